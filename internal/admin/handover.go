package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// TransferRequest is the body of POST /v1/transfer.
type TransferRequest struct {
	To    cluster.NodeID `json:"to"`              // "" is the best follower
	Group string         `json:"group,omitempty"` // "" is the default election
}

func (s *Server) postTransfer(w http.ResponseWriter, r *http.Request) {
	var req TransferRequest
	if !read(w, r, &req) {
		return
	}
	if !s.has(w, req.Group) {
		return
	}
	s.done(w, s.Node.Transfer(r.Context(), req.To))
}

// StepDownRequest is the body of POST /v1/step-down.
type StepDownRequest struct {
	For   string `json:"for,omitempty"`   // how long not to stand again, such as "30s"; "" is not at all
	Group string `json:"group,omitempty"` // "" is the default election
}

func (s *Server) postStepDown(w http.ResponseWriter, r *http.Request) {
	var req StepDownRequest
	if !read(w, r, &req) {
		return
	}
	rest, err := time.ParseDuration(cmp.Or(req.For, "0s"))
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("for: %w; must be a duration such as 30s", err))
		return
	}
	if s.has(w, req.Group) {
		s.done(w, s.Node.Default().StepDown(r.Context(), rest))
	}
}

// done answers with the node's status, or says why it could not be done.
func (s *Server) done(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, http.StatusOK, s.Node.Status())
}

// has reports whether the node can change an election of that name, "" being the
// default one; it answers the request itself if it cannot.
func (s *Server) has(w http.ResponseWriter, group string) bool {
	if group == "" || group == cluster.DefaultGroup {
		return true
	}
	refuse(w, http.StatusNotFound, noElection(s.Node.Status().Node, group))
	return false
}
