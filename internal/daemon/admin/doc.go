// Package admin is the HTTP side of a node: what people, scripts and load balancers ask
// it, and the client that bmqnode's own commands use. The node serves its description,
// openapi.yaml, at /v1/openapi.yaml.
//
//	GET  /v1/status      the node's status, as JSON
//	GET  /v1/leader      200 if this node leads; otherwise 503, and who leads
//	GET  /v1/events      its transitions, as server-sent events that can be resumed
//	POST /v1/transfer    {"to": "b"}: hand leadership over ("" is the best follower)
//	POST /v1/step-down   {"for": "30s"}: stop leading, and do not stand for so long
//	POST /v1/forget      {"node": "b"}: accept the next process of that name
//	GET  /v1/faults      links that are cut on purpose; POST changes them
//	GET  /metrics        its figures, for Prometheus
//	GET  /healthz        200 while the node takes part
//	GET  /readyz         200 while it leads or follows a leader
//
// Errors are RFC 9457 problem details. A request that changes something needs the token,
// if there is one; without a token it must come over loopback or a Unix socket. Nothing
// is encrypted. A page in a browser can neither read nor change anything.
package admin
