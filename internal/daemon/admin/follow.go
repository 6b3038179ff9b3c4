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
	// Ready is called once connected, before any event. It may be nil.
	Ready func()
	// Event gets each transition, in order.
	Event func(Event)
	// Reset is called instead where events are gone. It may be nil.
	Reset func(Reset)
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
	resp, err := c.send(alive, http.MethodGet, "/v1/events?after="+url.QueryEscape(s.After), nil)
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
		var err error
		switch data := strings.NewReader(fields["data"]); fields["event"] {
		case "transition":
			var e Event
			if err = decode(data, &e); err == nil {
				s.Event(e)
			}
		case "reset":
			var r Reset
			if err = decode(data, &r); err == nil && s.Reset != nil {
				s.Reset(r)
			}
		}
		id := fields["id"]
		if err != nil {
			return fmt.Errorf("%s %q: %w", fields["event"], id, err)
		}
		if id != "" {
			s.After = id
		}
		clear(fields)
	}
	return lines.Err()
}
