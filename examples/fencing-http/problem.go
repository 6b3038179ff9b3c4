package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/bmqelect/bmqelect/lsn"
)

// tokenHeader carries a fencing token, as text: "5.2".
const tokenHeader = "Fencing-Token"

// problem says in an answer why a request failed (RFC 9457). Where the fence
// refused it, the two tokens say by how much it came too late.
type problem struct {
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail"`
	Token  lsn.LSN `json:"token,omitzero"`
	Newest lsn.LSN `json:"newest,omitzero"`
}

func newProblem(status int, detail string) problem {
	return problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// refusal is what a stale token is answered.
func refusal(stale *lsn.StaleError) problem {
	p := newProblem(http.StatusPreconditionFailed,
		"a newer leader has written: got "+stale.Got.String()+" after "+stale.Newest.String())
	p.Token, p.Newest = stale.Got, stale.Newest
	return p
}

// asError returns the problem as its receiver sees it: a *lsn.StaleError if the
// fence refused, not if somebody in between answered in its place.
func (p problem) asError() error {
	if p.Token.Less(p.Newest) {
		return &lsn.StaleError{Got: p.Token, Newest: p.Newest}
	}
	return errors.New(p.Title + ": " + p.Detail)
}

// answer sends the problem.
func (p problem) answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a caller that is gone needs no answer
}
