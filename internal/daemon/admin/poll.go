package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// indexHeader names the newest transition that the answer can show. Given back
// as ?index= it lets the next request wait for a newer one.
const indexHeader = "Bmqelect-Index"

// Bounds of ?wait=.
const (
	defaultWait = 30 * time.Second
	longestWait = 5 * time.Minute
)

var errCrowd = fmt.Errorf("%d requests wait or stream already, which is the limit; close some or ask without wait", maxWaiting)

// groupOf is the election that a request is about.
func groupOf(r *http.Request) string { return cmp.Or(r.PathValue("group"), cluster.DefaultGroup) }

// everyGroup is for requests that are about all elections.
func everyGroup(*http.Request) string { return "" }

// polled lets a request for state wait until a transition that is newer than
// ?index=, at most for ?wait=. An index that is not of this boot is older than
// anything, and so is none at all.
func (s *Server) polled(group func(*http.Request) string, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		wait, err := waitOf(r)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		if place, ok := s.journal.place(r.URL.Query().Get("index")); ok && wait > 0 {
			if !s.enter(w) {
				return
			}
			s.await(r.Context(), group(r), place, wait)
			s.leave()
		}
		// Read before the state: a change in between lets the next request answer at once.
		w.Header().Set(indexHeader, s.journal.id(s.journal.newest()))
		answer(w, r)
	}
}

// waitOf is how long a request may wait.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return defaultWait, nil
	}
	wait, err := time.ParseDuration(text)
	if err == nil && (wait < 0 || wait > longestWait) {
		err = errors.New("out of bounds")
	}
	if err != nil {
		return 0, fmt.Errorf("wait=%s: must be a duration of 0s to %s, such as 30s (%w)", text, longestWait, err)
	}
	return wait, nil
}

// enter takes one of the places of requests that wait, or answers that there is
// none; leave gives it back.
func (s *Server) enter(w http.ResponseWriter) bool {
	select {
	case s.waiting <- struct{}{}:
		return true
	default:
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, errCrowd)
		return false
	}
}

func (s *Server) leave() { <-s.waiting }

// await returns when the group, or any if it is "", has a transition after place,
// when that cannot be known any more, or when the time is over.
func (s *Server) await(ctx context.Context, group string, place uint64, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		x := s.journal.after(place)
		if x.gap || x.closed || x.concerns(group) {
			return
		}
		place = x.last
		select {
		case <-x.more:
		case <-ctx.Done():
			return
		}
	}
}

func (x extract) concerns(group string) bool {
	for _, e := range x.events {
		if group == "" || e.Group == group {
			return true
		}
	}
	return false
}
