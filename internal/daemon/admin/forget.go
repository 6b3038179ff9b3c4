package admin

import (
	"context"
	"net/http"

	"github.com/bmqelect/bmqelect/cluster"
)

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Node cluster.NodeID `json:"node"` // whose machine is gone for good
}

func (s *Server) postForget(w http.ResponseWriter, r *http.Request) {
	var req ForgetRequest
	if read(w, r, &req) {
		s.done(w, s.Node.Forget(r.Context(), req.Node))
	}
}

// Forget makes the node take in the next process of another node's name, and
// returns its status then: see cluster.Node.Forget.
func (c *Client) Forget(ctx context.Context, req ForgetRequest) (cluster.Status, error) {
	var st cluster.Status
	err := c.do(ctx, http.MethodPost, "/v1/forget", req, &st)
	return st, c.checked(st, err)
}
