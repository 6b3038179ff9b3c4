// Package admin is the HTTP side of a node: what people, scripts and load
// balancers ask it, and the client that bmqnode's own commands use.
//
//	GET  /v1/status    the node's status, as JSON
//	GET  /v1/events    its transitions from now on, as server-sent events
//	POST /v1/transfer  {"to": "b"}: hand leadership over ("" is the best follower)
//	GET  /v1/faults    links that are cut on purpose; POST changes them
//	GET  /healthz      200 while the node takes part
//	GET  /readyz       200 while it leads or follows a leader
//
// Errors are RFC 9457 problem details. The package has no authentication: it is
// meant for loopback, and refuses what a browser sends from another origin.
package admin
