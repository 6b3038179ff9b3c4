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

func (s *Server) postTransfer(w http.ResponseWriter, r *http.Request, req TransferRequest) {
	s.inElection(w, req.Group, func(e *cluster.Election) error {
		return e.Transfer(r.Context(),
			req.To)
	})
}

// StepDownRequest is the body of POST /v1/step-down.
type StepDownRequest struct {
	// how long not to stand again, such as "30s"; "" is not at all
	For   string `json:"for,omitempty"`
	Group string `json:"group,omitempty"` // "" is the default election
}

func (s *Server) postStepDown(w http.ResponseWriter, r *http.Request, req StepDownRequest) {
	rest, err := time.ParseDuration(cmp.Or(req.For, "0s"))
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("for: %w; must be a duration such as 30s", err))
		return
	}
	s.inElection(w, req.Group, func(e *cluster.Election) error {
		return e.StepDown(r.Context(),
			rest)
	})
}

// inElection does something in the election of that name, "" being the default one.
func (s *Server) inElection(w http.ResponseWriter, group string, do func(*cluster.Election) error) {
	e, err := s.Node.Lookup(cmp.Or(group, cluster.DefaultGroup))
	if errors.Is(err, cluster.ErrNotOpen) {
		refuse(w, http.StatusNotFound, noElection(s.Node.Status().Node, group))
		return
	}
	if err == nil {
		err = do(e)
	}
	s.answerDone(w, err)
}

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Node cluster.NodeID `json:"node"` // whose machine is gone for good
}

func (s *Server) postForget(w http.ResponseWriter, r *http.Request, req ForgetRequest) {
	s.answerDone(w, s.Node.Forget(r.Context(), req.Node))
}

// answerDone answers with the node's status, or says why it could not be done.
func (s *Server) answerDone(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, s.Node.Status())
}
