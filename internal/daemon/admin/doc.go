// Package admin is the HTTP side of a node: what people, scripts and load
// balancers ask it, and the client that bmqnode's own commands use. openapi.yaml
// describes it whole; the node serves that at /v1/openapi.yaml.
//
//	GET  /v1/status      the node's status, as JSON; also /v1/members, /v1/elections
//	GET  /v1/leader      200 if this node leads, 503 and who does if not
//	GET  /v1/events      its transitions, as server-sent events that can be resumed
//	POST /v1/transfer    {"to": "b"}: hand leadership over ("" is the best follower)
//	POST /v1/step-down   {"for": "30s"}: lead no more, and do not stand for so long
//	POST /v1/forget      {"node": "b"}: let the next process of that name in
//	GET  /v1/faults      links that are cut on purpose; POST changes them
//	GET  /metrics        its figures, for Prometheus
//	GET  /healthz        200 while the node takes part
//	GET  /readyz         200 while it leads or follows a leader
//
// State can be waited for with ?wait= and ?index=. Errors are RFC 9457 problem
// details. What changes something needs the token, if there is one, and without
// one comes over loopback or a Unix socket; nothing is encrypted. A page in a
// browser can neither read nor change anything.
package admin
