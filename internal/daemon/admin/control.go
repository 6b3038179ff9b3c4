package admin

import (
	"cmp"
	"errors"
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
	if e, ok := s.election(w, req.Group); ok {
		s.answerDone(w, e.Transfer(r.Context(), req.To))
	}
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
	if e, ok := s.election(w, req.Group); ok {
		s.answerDone(w, e.StepDown(r.Context(), rest))
	}
}

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Node cluster.NodeID `json:"node"` // whose machine is gone for good
}

func (s *Server) postForget(w http.ResponseWriter, r *http.Request) {
	var req ForgetRequest
	if read(w, r, &req) {
		s.answerDone(w, s.Node.Forget(r.Context(), req.Node))
	}
}

// answerDone answers with the node's status, or says why it could not be done.
func (s *Server) answerDone(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, s.Node.Status())
}

// election is the one of that name, "" being the default one; it answers the
// request itself if the node has none.
func (s *Server) election(w http.ResponseWriter, group string) (*cluster.Election, bool) {
	e, err := s.Node.Lookup(cmp.Or(group, cluster.DefaultGroup))
	switch {
	case errors.Is(err, cluster.ErrNotOpen):
		refuse(w, http.StatusNotFound, noElection(s.Node.Status().Node, group))
	case err != nil:
		refuse(w, http.StatusConflict, err)
	}
	return e, err == nil
}
