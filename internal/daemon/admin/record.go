package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// recordHeader has the LSN of the record whose value is the body. The entity tag is that of the
// value: a new leader, or a change of voters, writes the same value under a new LSN.
const recordHeader = "Bmqelect-Record"

// Record is the newest committed record that a node knows, and the data of the event `record`.
type Record struct {
	Group    string          `json:"group"`
	LSN      lsn.LSN         `json:"lsn"`
	ValueLSN lsn.LSN         `json:"value_lsn"` // under which the value was first written
	Value    []byte          `json:"value"`     // in base64
	Voters   []cluster.Voter `json:"voters,omitempty"`
}

// Published is the answer to PUT /v1/record.
type Published struct {
	Group string  `json:"group"`
	LSN   lsn.LSN `json:"lsn"` // of the value
}

// entityTag is the ETag of a value.
func entityTag(of lsn.LSN) string { return `"` + of.String() + `"` }

func (s *Server) getRecord(w http.ResponseWriter, r *http.Request) {
	e, ok := s.election(w, r.URL.Query().Get("group"))
	switch {
	case !ok:
		return
	case r.URL.Query().Has("watch"):
		s.watchRecord(w, r, e)
		return
	}
	rec := e.Record()
	if rec.ValueLSN.IsZero() {
		code, err := s.noValue(e)
		refuse(w, code, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", entityTag(rec.ValueLSN))
	h.Set(recordHeader, rec.LSN.String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(rec.Value))
}

// watchRecord streams the newest committed record, whenever it changes. A reader that returns with
// the id of the last one that it saw gets the next one.
func (s *Server) watchRecord(w http.ResponseWriter, r *http.Request, e *cluster.Election) {
	out, ctx := s.openStream(w, r)
	if out == nil {
		return
	}
	defer s.streams.Leave(out)
	defer out.end()
	versions := make(chan cluster.Record)
	s.running.Go(func() {
		defer close(versions)
		for rec := range e.Records(ctx) {
			select {
			case versions <- rec:
			case <-ctx.Done():
			}
		}
	})
	seen := lastSeen(r)
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for out.control.Flush() == nil {
		select {
		case rec, open := <-versions:
			if !open {
				return
			}
			if id := rec.LSN.String(); id != seen && !rec.LSN.IsZero() {
				out.event(id, "record", Record{
					Group: e.Group(), LSN: rec.LSN, ValueLSN: rec.ValueLSN, Value: rec.Value, Voters: rec.Voters,
				})
			}
		case <-idle.C:
			out.write(": alive\n\n")
		}
	}
}

func (s *Server) putRecord(w http.ResponseWriter, r *http.Request) {
	e, ok := s.election(w, r.URL.Query().Get("group"))
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
	case errors.Is(err, cluster.ErrConflict):
		return http.StatusPreconditionFailed
	case errors.Is(err, cluster.ErrUnknown):
		return http.StatusGatewayTimeout
	case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusConflict
}

// noValue says why a node knows no value: nobody has written one, or it does not know yet.
func (s *Server) noValue(e *cluster.Election) (code int, err error) {
	st := s.Node.Status()
	g := GroupIn(st, e.Group())
	switch {
	case g.Leader == "":
		return http.StatusServiceUnavailable, fmt.Errorf("node %s does not know the record of %s: %s",
			st.Node, g.Group, g.Explanation)
	case g.Record != nil && g.Record.Committed.IsZero():
		return http.StatusServiceUnavailable, fmt.Errorf("node %s does not know the record of %s yet: "+
			"leader %s has not named one; ask again", st.Node, g.Group, g.Leader)
	}
	return http.StatusNotFound, fmt.Errorf("nobody has written a value in election %s", g.Group)
}

// Voters are the voters of an election as a node knows them.
type Voters struct {
	Group  string          `json:"group"`
	Leader cluster.NodeID  `json:"leader,omitempty"`
	Quorum int             `json:"quorum"`
	Voters []cluster.Voter `json:"voters"` // by the record, or by the configuration without one
	// Record is absent if none was ever written.
	Record *cluster.RecordStatus `json:"record,omitempty"`
}

func (s *Server) getVoters(w http.ResponseWriter, r *http.Request) {
	if e, ok := s.election(w, r.URL.Query().Get("group")); ok {
		answer(w, VotersIn(s.Node.Status(), e.Group()))
	}
}

// VotersIn are the voters of an election as a node knows them.
func VotersIn(st cluster.Status, group string) Voters {
	g := GroupIn(st, group)
	v := Voters{Group: g.Group, Leader: g.Leader, Quorum: g.Quorum, Record: g.Record}
	if g.Record != nil {
		v.Voters = g.Record.Voters
		return v
	}
	for _, id := range g.Voters {
		v.Voters = append(v.Voters, cluster.Voter{Node: id})
	}
	return v
}

// VotersRequest is the body of POST /v1/voters. It says one of Add, Remove and Replace.
type VotersRequest struct {
	Add     cluster.NodeID `json:"add,omitempty"`
	Remove  cluster.NodeID `json:"remove,omitempty"`
	Replace cluster.NodeID `json:"replace,omitempty"`
	By      cluster.NodeID `json:"by,omitempty"` // who replaces it; "": the same name on another disk
	DryRun  bool           `json:"dry_run,omitempty"`
}

// VotersChanged is the answer to POST /v1/voters.
type VotersChanged struct {
	Steps []cluster.VoterStep `json:"steps"`
}

// postVoters changes the voters. The steps are in the answer, or events of a stream, `step`, if the
// client asks for one; its last event is `done`, or `problem`.
func (s *Server) postVoters(w http.ResponseWriter, r *http.Request, req VotersRequest) {
	said := slices.DeleteFunc([]cluster.NodeID{req.Add, req.Remove, req.Replace},
		func(id cluster.NodeID) bool { return id == "" })
	if len(said) != 1 || req.By != "" && req.Replace == "" {
		refuse(w, http.StatusBadRequest,
			errors.New("say one of add, remove and replace, and by only with replace"))
		return
	}
	var done VotersChanged
	tell := func(step cluster.VoterStep) { done.Steps = append(done.Steps, step) }
	var out *stream
	ctx := r.Context()
	if strings.Contains(r.Header.Get("Accept"), eventStream) {
		if out, ctx = s.openStream(w, r); out == nil {
			return
		}
		defer s.streams.Leave(out)
		defer out.end()
		tell = func(step cluster.VoterStep) { out.event("", "step", step); _ = out.control.Flush() }
	}
	err := s.changeVoters(ctx, req, tell)
	switch {
	case out != nil && err != nil:
		out.event("", "problem", newProblem(statusOf(err), err))
	case out != nil:
		out.event("", "done", struct{}{})
	case err != nil:
		refuse(w, statusOf(err), err)
	default:
		answer(w, done)
	}
}

func (s *Server) changeVoters(
	ctx context.Context, req VotersRequest, tell func(cluster.VoterStep),
) error {
	options := []cluster.VoterOption{cluster.WithProgress(tell)}
	if req.DryRun {
		options = append(options, cluster.DryRun())
	}
	switch {
	case req.Add != "":
		return s.Node.AddVoter(ctx, req.Add, options...)
	case req.Remove != "":
		return s.Node.RemoveVoter(ctx, req.Remove, options...)
	}
	return s.Node.ReplaceVoter(ctx, req.Replace, cmp.Or(req.By, req.Replace), options...)
}
