package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Record is a committed record, as GET /v1/record has it for who accepts application/json alone.
type Record struct {
	Group    string          `json:"group"`
	LSN      lsn.LSN         `json:"lsn"`
	ValueLSN lsn.LSN         `json:"value_lsn"` // under which the value was first written
	Value    []byte          `json:"value"`     // in base64
	Voters   []cluster.Voter `json:"voters"`
	Newest   bool            `json:"newest"` // none newer was committed when the leader was asked
}

// Published is the answer to PUT /v1/record.
type Published struct {
	Group string  `json:"group"`
	LSN   lsn.LSN `json:"lsn"` // of the value
}

// entityTag is the ETag of a value.
func entityTag(of lsn.LSN) string { return `"` + of.String() + `"` }

// getRecord answers with the newest committed record that this node knows or, if it is asked for
// the newest, that there is.
func (s *Server) getRecord(w http.ResponseWriter, r *http.Request) {
	e, ok := s.election(w, r.URL.Query().Get("group"))
	if !ok {
		return
	}
	rec, newest := e.Record(), r.URL.Query().Has("newest")
	if newest {
		var err error
		if rec, err = e.Newest(r.Context()); err != nil {
			refuse(w, statusOf(err), err)
			return
		}
	}
	h := w.Header()
	h.Set("Vary", "Accept")
	asJSON := r.Header.Get("Accept") == "application/json"
	switch {
	case rec.ValueLSN.IsZero() && (rec.LSN.IsZero() || !asJSON):
		code, err := noValue(e.Status())
		refuse(w, code, err)
		return
	case asJSON:
		answer(w, Record{e.Group(), rec.LSN, rec.ValueLSN, rec.Value, rec.Voters, newest})
		return
	}
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", entityTag(rec.ValueLSN))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(rec.Value))
}

// led is the election of that name, or it answers why there is none, or that nobody leads it.
func (s *Server) led(w http.ResponseWriter, group string) (e *cluster.Election, ok bool) {
	if e, ok = s.election(w, group); ok {
		if g := e.Status(); g.Leader == "" {
			refuse(w, http.StatusServiceUnavailable, fmt.Errorf("election %s: %s", g.Group, g.Explanation))
			return nil, false
		}
	}
	return e, ok
}

func (s *Server) putRecord(w http.ResponseWriter, r *http.Request) {
	e, ok := s.led(w, r.URL.Query().Get("group"))
	if !ok {
		return
	}
	match, err := condition(r.Header)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, cluster.MaxValue))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		refuse(w, http.StatusRequestEntityTooLarge,
			fmt.Errorf("the value is larger than %d bytes, the limit", cluster.MaxValue))
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, fmt.Errorf("the value was not received whole: %w", err))
		return
	}
	at, err := e.Publish(r.Context(), value, cluster.PublishOptions{IfMatch: match})
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	w.Header().Set("ETag", entityTag(at))
	answer(w, Published{e.Group(), at})
}

// condition is the LSN that the value must have for a PUT; nil for any. If-None-Match: * is
// If-Match: "0.0": nobody has written a value.
func condition(h http.Header) (*lsn.LSN, error) {
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	switch {
	case match == "" && none == "":
		return nil, nil
	case match == "" && none == "*":
		return new(lsn.LSN), nil
	case none != "":
		return nil, fmt.Errorf("If-None-Match is %q, but must be * and without If-Match", none)
	}
	at, err := lsn.Parse(strings.Trim(match, `"`))
	if err != nil || match != entityTag(at) {
		return nil, fmt.Errorf("If-Match is %q, but must be one ETag of a GET, such as \"5.2\" in "+
			"quotes, or \"0.0\" if no value may be there", match)
	}
	return &at, nil
}

// statusOf is the status code of an error of what the leader carries out.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errOneChange):
		return http.StatusBadRequest
	case errors.Is(err, cluster.ErrConflict):
		return http.StatusPreconditionFailed
	case errors.Is(err, cluster.ErrUnknown), errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, cluster.ErrClosed),
		errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusConflict
}

// noValue says why a node knows no value: nobody has written one, or it does not know yet.
func noValue(g cluster.GroupStatus) (code int, err error) {
	if r := g.Record; r == nil && g.Leader != "" || r != nil && !r.Committed.IsZero() {
		return http.StatusNotFound, fmt.Errorf("nobody has written a value in election %s", g.Group)
	}
	return http.StatusServiceUnavailable, fmt.Errorf("this node does not know a value of election %s: "+
		"none was written, or no leader has named it: %s", g.Group, g.Explanation)
}

// getVoters answers with the election's part of the status: who votes, and what is known of the
// record that says so.
func (s *Server) getVoters(w http.ResponseWriter, r *http.Request) {
	if e, ok := s.election(w, r.URL.Query().Get("group")); ok {
		answer(w, e.Status())
	}
}

// VotersRequest is the body of POST /v1/voters. It says one of Add, Remove and Replace.
type VotersRequest struct {
	Add     cluster.NodeID `json:"add,omitempty"`
	Remove  cluster.NodeID `json:"remove,omitempty"`
	Replace cluster.NodeID `json:"replace,omitempty"`
	By      cluster.NodeID `json:"by,omitempty"` // who replaces it; "": the same name on another disk
	DryRun  bool           `json:"dry_run,omitempty"`
}

var errOneChange = errors.New("say one of add, remove and replace; by goes with replace")

// postVoters changes the voters. The answer has a line of JSON for each step, sent at once, and
// then a problem if the change failed after its first step.
func (s *Server) postVoters(w http.ResponseWriter, r *http.Request, req VotersRequest) {
	if _, ok := s.led(w, ""); !ok {
		return
	}
	out, begun := http.NewResponseController(w), false
	line := func(v any) {
		begun = true
		_ = out.SetWriteDeadline(time.Now().Add(stall))
		_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
		_ = out.Flush()
	}
	options := cluster.VoterOptions{DryRun: req.DryRun, Progress: func(step cluster.VoterStep) {
		line(step)
		if !req.DryRun {
			s.journal.put("voters", step.Group, VotersEvent{time.Now(), s.journal.node, step})
		}
	}}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	if err := s.changeVoters(r.Context(), req, options); err != nil && begun {
		line(newProblem(statusOf(err), err))
	} else if err != nil {
		refuse(w, statusOf(err), err)
	}
}

func (s *Server) changeVoters(
	ctx context.Context, req VotersRequest, o cluster.VoterOptions,
) error {
	req.DryRun = false
	switch req {
	case VotersRequest{}:
	case VotersRequest{Add: req.Add}:
		return s.Node.AddVoter(ctx, req.Add, o)
	case VotersRequest{Remove: req.Remove}:
		return s.Node.RemoveVoter(ctx, req.Remove, o)
	case VotersRequest{Replace: req.Replace, By: req.By}:
		return s.Node.ReplaceVoter(ctx, req.Replace, cmp.Or(req.By, req.Replace), o)
	}
	return errOneChange
}
