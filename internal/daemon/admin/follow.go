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

	"github.com/bmqelect/bmqelect/lsn"
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
	return c.follow(ctx, "/v1/events?after="+url.QueryEscape(s.After),
		func(body io.Reader, heard func()) error {
			if s.Ready != nil {
				s.Ready()
			}
			return s.read(body, heard)
		})
}

// FollowRecord calls show for the newest committed record that the node knows, and whenever that
// changes, until ctx ends or the connection breaks; it returns nil if the node ended the stream.
// The record with the LSN after is left out.
func (c *Client) FollowRecord(
	ctx context.Context, group string, after lsn.LSN, show func(Record),
) error {
	query := url.Values{"watch": {""}, "group": {group}, "after": {after.String()}}
	return c.follow(ctx, "/v1/record?"+query.Encode(), func(body io.Reader, heard func()) error {
		return readEvents(body, heard, func(kind, _ string, data io.Reader) (err error) {
			var rec Record
			if kind == "record" {
				if err = decode(data, &rec); err == nil {
					show(rec)
				}
			}
			return err
		})
	})
}

// follow reads a stream that shows signs of life.
func (c *Client) follow(
	ctx context.Context, path string, read func(body io.Reader, heard func()) error,
) error {
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	resp, err := c.send(alive, http.MethodGet, path, nil)
	if err != nil {
		return errors.Join(err, context.Cause(alive))
	}
	defer resp.Body.Close()
	err = read(resp.Body, func() { silence.Reset(maxSilence) })
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
	return readEvents(body, heard, func(kind, id string, data io.Reader) (err error) {
		switch kind {
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
		if err == nil && id != "" {
			s.After = id
		}
		return err
	})
}

// readEvents calls event for each of a stream of server-sent events until it fails, and heard at
// every line.
func readEvents(
	body io.Reader, heard func(), event func(kind, id string, data io.Reader) error,
) error {
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
		if err := event(kind, id, strings.NewReader(fields["data"])); err != nil {
			return fmt.Errorf("%s %q: %w", kind, id, err)
		}
		clear(fields)
	}
	return lines.Err()
}
