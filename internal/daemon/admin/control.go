package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// TransferRequest is the body of POST /v1/transfer.
type TransferRequest struct {
	To    cluster.NodeID `json:"to"`              // "" is the best follower
	Group string         `json:"group,omitempty"` // "" is the default election
}

func (s *Server) postTransfer(w http.ResponseWriter, r *http.Request, req TransferRequest) {
	s.inElection(w, req.Group, func(e *cluster.Election) error {
		return e.Transfer(r.Context(), req.To)
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
		return e.StepDown(r.Context(), rest)
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

// FaultRequest is the body of POST /v1/faults. Healing comes before cutting.
type FaultRequest struct {
	HealAll bool             `json:"heal_all,omitempty"`
	Heal    []cluster.NodeID `json:"heal,omitempty"`    // links without faults again
	Cut     []cluster.NodeID `json:"cut,omitempty"`     // nothing comes or goes
	CutIn   []cluster.NodeID `json:"cut_in,omitempty"`  // nothing comes from them
	CutOut  []cluster.NodeID `json:"cut_out,omitempty"` // nothing goes to them
	Reset   []cluster.NodeID `json:"reset,omitempty"`   // the connection is reset, once
	Links   []LinkFault      `json:"links,omitempty"`   // what goes out is late, or lost
}

// LinkFault makes what goes to a peer late or lost; zeros end that.
type LinkFault struct {
	To     cluster.NodeID  `json:"to"`
	Delay  cluster.Seconds `json:"delay_s"`
	Jitter cluster.Seconds `json:"jitter_s"` // at most so much more, at random
	Loss   float64         `json:"loss"`     // share of the frames, 0 to 1
}

// FaultStatus says what is cut.
type FaultStatus struct {
	Faults string `json:"faults"`
}

var errNoFaults = errors.New("this node makes no faults: it was not started with --rehearsal")

func (s *Server) getFaults(w http.ResponseWriter, _ *http.Request) {
	if s.Faults == nil {
		refuse(w, http.StatusNotFound, errNoFaults)
		return
	}
	answer(w, FaultStatus{Faults: s.Faults.String()})
}

func (s *Server) postFaults(w http.ResponseWriter, r *http.Request, req FaultRequest) {
	if f := s.Faults; f != nil {
		if req.HealAll {
			f.HealAll()
		}
		for _, p := range req.Heal {
			f.Heal(p)
		}
		for dir, peers := range map[fault.Direction][]cluster.NodeID{
			fault.Both: req.Cut, fault.In: req.CutIn, fault.Out: req.CutOut,
		} {
			for _, p := range peers {
				f.Cut(p, dir)
			}
		}
		for _, l := range req.Links {
			f.Delay(l.To, l.Delay.Duration(), l.Jitter.Duration())
			f.Loss(l.To, l.Loss)
		}
		for _, p := range req.Reset {
			f.Reset(p)
		}
	}
	s.getFaults(w, r)
}
