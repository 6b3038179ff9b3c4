package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Stream reads a node's events. It keeps its place, so that Follow goes on where it broke off: no
// event is lost without a Reset.
type Stream struct {
	// After is the id of the newest event that was seen; Follow keeps it up to date. "" begins
	// with the events from now on.
	After string
	// Group, Prefix and Kinds say which events there are: of one election, of those whose names begin
	// so, of these kinds. The zero values stand for all; an older node sends all.
	Group, Prefix string
	Kinds         []string
	// Ready is called once connected, before any event. It may be nil.
	Ready func()
	// Event gets each transition in order, or masses of them: see Event.Transitions. It and the rest
	// may be nil.
	Event func(Event)
	// Reset is called instead where events are gone.
	Reset func(Reset)
	// Record gets the newest record of each election, when it changes and after each connect.
	Record func(RecordEvent)
	// Voters gets the steps of changes of voters that the node was asked for.
	Voters func(VotersEvent)
	// Probe gets the new verdicts of the node's health probes.
	Probe func(ProbeEvent)
}

// Check returns what is wrong with Group, Prefix and Kinds.
func (s *Stream) Check() error {
	_, err := filterIn(s.query())
	return err
}

func (s *Stream) query() url.Values {
	query := url.Values{"after": {s.After}, "kind": s.Kinds}
	for name, value := range map[string]string{"group": s.Group, "prefix": s.Prefix} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// maxSilence is the time without a sign of life after which a stream counts as dead.
const maxSilence = 5 * keepAlive / 2

var errSilent = fmt.Errorf("not a sign of life for %s", maxSilence)

// Follow reads the node's events into s until ctx ends or the connection breaks; it returns nil
// if the node ended the stream. Only one call at a time may use s.
func (c *Client) Follow(ctx context.Context, s *Stream) error {
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	resp, err := c.send(alive, http.MethodGet, "/v1/events?"+s.query().Encode(), nil)
	if err != nil {
		return errors.Join(err, context.Cause(alive))
	}
	defer resp.Body.Close()
	if s.Ready != nil {
		s.Ready()
	}
	err = s.read(resp.Body, func() { silence.Reset(maxSilence) })
	if cause := context.Cause(alive); cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("events from %s: %w", c.addr, err)
	}
	return nil
}

// read reads a stream of server-sent events; it calls heard at every line.
func (s *Stream) read(body io.Reader, heard func()) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAnswer) // the status of a large cluster is one line
	fields := map[string]string{}
	for lines.Scan() {
		heard()
		if name, value, ok := strings.Cut(lines.Text(), ": "); ok { // otherwise a comment
			fields[name] = value
		}
		if lines.Text() != "" { // not the end of an event
			continue
		}
		kind, id := fields["event"], fields["id"]
		if err := s.heard(kind, strings.NewReader(fields["data"])); err != nil {
			return fmt.Errorf("%s %q: %w", kind, id, err)
		}
		if id != "" {
			s.After = id
		}
		clear(fields)
	}
	return lines.Err()
}

// heard passes an event on, if somebody wants its kind.
func (s *Stream) heard(kind string, data io.Reader) error {
	switch kind {
	case "transition", masses:
		return pass(data, s.Event)
	case "reset":
		return pass(data, s.Reset)
	case "record":
		return pass(data, s.Record)
	case "voters":
		return pass(data, s.Voters)
	case "probe":
		return pass(data, s.Probe)
	}
	return nil
}

func pass[T any](data io.Reader, to func(T)) error {
	var e T
	if to == nil {
		return nil
	}
	err := decode(data, &e)
	if err == nil {
		to(e)
	}
	return err
}
