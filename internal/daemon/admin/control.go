package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
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
	// how long the node does not stand again, such as "30s"; "" is 0s
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

// PreparedRequest is the body of POST /v1/prepared.
type PreparedRequest struct {
	// false says that the application needs to be prepared before it can lead
	Ready bool   `json:"ready"`
	Group string `json:"group,omitempty"` // "" is the default election
}

func (s *Server) postPrepared(w http.ResponseWriter, _ *http.Request, req PreparedRequest) {
	s.inElection(w, req.Group, func(e *cluster.Election) error {
		e.SetPrepared(req.Ready)
		return nil
	})
}

// inElection does something in the election of that name; "" is the default one.
func (s *Server) inElection(w http.ResponseWriter, group string, do func(*cluster.Election) error) {
	if e, ok := s.election(w, group); ok {
		s.answerDone(w, do(e), e.Group())
	}
}

// election is the election of that name, "" for the default one, or it answers why there is none.
func (s *Server) election(w http.ResponseWriter, group string) (e *cluster.Election, ok bool) {
	e, err := s.Node.Lookup(cmp.Or(group, cluster.DefaultGroup))
	switch {
	case errors.Is(err, cluster.ErrNotOpen):
		refuse(w, http.StatusNotFound, noElection(s.journal.node, group))
	case err != nil:
		refuse(w, statusOf(err), err)
	}
	return e, err == nil
}

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Node cluster.NodeID `json:"node"` // its machine is gone for good
}

func (s *Server) postForget(w http.ResponseWriter, r *http.Request, req ForgetRequest) {
	s.answerDone(w, s.Node.Forget(r.Context(), req.Node))
}

// answerDone answers with the node's status, in which these elections are, or says why it could not
// be done.
func (s *Server) answerDone(w http.ResponseWriter, err error, groups ...string) {
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	st := s.Node.StatusOf(summary)
	for _, group := range groups {
		if GroupIn(st, group).Group == "" {
			st.Groups = append(st.Groups, s.Node.StatusOf(cluster.Selection{Group: group}).Groups...)
		}
	}
	answer(w, st)
}

// FaultRequest is the body of POST /v1/faults. Healing comes before cutting.
type FaultRequest struct {
	HealAll bool             `json:"heal_all,omitempty"`
	Heal    []cluster.NodeID `json:"heal,omitempty"`    // links that work again
	Cut     []cluster.NodeID `json:"cut,omitempty"`     // links that pass nothing
	CutIn   []cluster.NodeID `json:"cut_in,omitempty"`  // links that pass nothing from the peer
	CutOut  []cluster.NodeID `json:"cut_out,omitempty"` // links that pass nothing to the peer
	Reset   []cluster.NodeID `json:"reset,omitempty"`   // connections that are reset, once
	Links   []LinkFault      `json:"links,omitempty"`
}

// LinkFault delays or loses frames to a peer; zeros end that.
type LinkFault struct {
	To     cluster.NodeID  `json:"to"`
	Delay  cluster.Seconds `json:"delay_s"`
	Jitter cluster.Seconds `json:"jitter_s"` // most that is added to the delay, at random
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

// PauseRequest is the body of POST /v1/pause.
type PauseRequest struct {
	For string `json:"for"` // how long, such as "1h"; at most 24h
}

func (s *Server) postPause(w http.ResponseWriter, r *http.Request, req PauseRequest) {
	d, err := time.ParseDuration(req.For)
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("for: %w; must be a duration such as 1h", err))
		return
	}
	s.answerDone(w, s.Node.Pause(r.Context(), d))
}

// ResumeRequest is the body of POST /v1/resume.
type ResumeRequest struct{}

func (s *Server) postResume(w http.ResponseWriter, r *http.Request, _ ResumeRequest) {
	s.answerDone(w, s.Node.Resume(r.Context()))
}

// SettingsRequest is the body of POST /v1/settings. What is absent stays as it is. The settings
// are for all elections of the node, until it restarts.
type SettingsRequest struct {
	Priority  *int   `json:"priority,omitempty"`
	Candidate *bool  `json:"candidate,omitempty"`
	LogLevel  string `json:"log_level,omitempty"` // trace, debug, info, warn or error
}

func (s *Server) postSettings(w http.ResponseWriter, _ *http.Request, req SettingsRequest) {
	level := hclog.LevelFromString(req.LogLevel)
	var err error
	switch {
	case req == SettingsRequest{}:
		err = errors.New("nothing is to be set: name priority, candidate or log_level")
	case req.LogLevel != "" && (level == hclog.NoLevel || level == hclog.Off):
		err = fmt.Errorf("log_level is %q, but must be trace, debug, info, warn or error", req.LogLevel)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	for _, e := range s.Node.Elections(cluster.Selection{}) {
		_, closed := s.Node.Lookup(e.Group())
		if err == nil && !errors.Is(closed, cluster.ErrNotOpen) {
			if err = closed; err == nil {
				err = set(e, req)
			}
		}
	}
	if err == nil && req.LogLevel != "" {
		s.Logger.SetLevel(level)
	}
	s.answerDone(w, err)
}

// set changes one election, the candidacy first: only that may be refused.
func set(e *cluster.Election, req SettingsRequest) error {
	if req.Candidate != nil {
		if err := e.SetCandidate(*req.Candidate); err != nil {
			return err
		}
	}
	if req.Priority != nil {
		return e.SetPriority(*req.Priority)
	}
	return nil
}

// GossipKeyRequest is the body of POST /v1/gossip-key: a step of a rotation.
type GossipKeyRequest struct {
	Step certs.GossipStep `json:"step"` // add, use or remove
	Key  string           `json:"key"`  // 32 bytes in base64, or plain
}

var errNoTLS = errors.New("this node has no keys of gossip: start it with --tls-dir")

// postGossipKey takes a step in the file of keys, and lets the node read the file again. No
// answer and no log line contains a key.
func (s *Server) postGossipKey(w http.ResponseWriter, _ *http.Request, req GossipKeyRequest) {
	key, err := certs.ParseGossipKey(req.Key)
	if err != nil {
		err = fmt.Errorf("key: %w", err)
	}
	if err = errors.Join(req.Step.Problem(), err); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if s.TLSDir == "" {
		refuse(w, http.StatusConflict, errNoTLS)
		return
	}
	s.keys.Lock()
	defer s.keys.Unlock()
	err = s.Node.ReloadTLS() // fails if the file is gone: a step would begin with plain then
	if err == nil {
		err = certs.ChangeGossipKeys(s.TLSDir, req.Step, key)
	}
	if err == nil {
		err = s.Node.ReloadTLS()
	}
	s.answerDone(w, err)
}
