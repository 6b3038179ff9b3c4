// Package admin is the HTTP side of a node: what people, scripts and load balancers ask
// it, and the client that bmqnode's own commands use. Server.routes lists what there is;
// the node serves its description, openapi.yaml, at /v1/openapi.yaml.
//
// Errors are RFC 9457 problem details. A request that changes something needs the token,
// if there is one; without a token it must come over loopback or a Unix socket. Nothing
// is encrypted. A page in a browser can neither read nor change anything.
package admin
