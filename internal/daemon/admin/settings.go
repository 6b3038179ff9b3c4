package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
)

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

// SettingsRequest is the body of POST /v1/settings. What is absent stays as it is. It is of
// all elections of the node, and holds until the node restarts.
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
	for _, g := range s.Node.Status().Groups {
		e, ended := s.Node.Lookup(g.Group)
		if err == nil && !errors.Is(ended, cluster.ErrNotOpen) {
			if err = ended; err == nil {
				err = set(e, req)
			}
		}
	}
	if err == nil && req.LogLevel != "" {
		s.Logger.SetLevel(level)
	}
	s.answerDone(w, err)
}

// set changes one election. Candidacy is first: it is the one that may be refused.
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
