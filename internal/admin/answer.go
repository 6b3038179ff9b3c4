package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Problem is an error as RFC 9457 has it. Its type is about:blank: the status
// says what kind it is, Detail what happened and what would be right.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func newProblem(code int, err error) Problem {
	return Problem{Title: http.StatusText(code), Status: code, Detail: err.Error()}
}

func refuse(w http.ResponseWriter, code int, err error) {
	respond(w, "application/problem+json", code, newProblem(code, err))
}

func answer(w http.ResponseWriter, code int, v any) {
	respond(w, "application/json", code, v)
}

func respond(w http.ResponseWriter, kind string, code int, v any) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone; there is nobody to tell
}

// read decodes a JSON body strictly; it answers the request itself if it cannot.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil && !errors.Is(err, io.EOF) { // no body asks for the defaults
		refuse(w, http.StatusBadRequest, fmt.Errorf("the body of %s %s: %w", r.Method, r.URL.Path, err))
		return false
	}
	return true
}

// problems turns the plain errors of the mux, for paths and methods that there
// are not, into problem documents.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			w = &plainError{ResponseWriter: w, r: r}
		}
		mux.ServeHTTP(w, r)
	})
}

// plainError takes an error that is written to it for its status alone.
type plainError struct {
	http.ResponseWriter
	r    *http.Request
	said bool
}

// WriteHeader answers with a problem instead; other answers, such as redirects
// to a clean path, pass.
func (p *plainError) WriteHeader(code int) {
	switch code {
	case http.StatusNotFound:
		p.refuse(code, fmt.Errorf("there is no %s; /v1/openapi.yaml lists what there is", p.r.URL.Path))
	case http.StatusMethodNotAllowed:
		p.refuse(code, fmt.Errorf("%s %s: the method must be one of %s", p.r.Method, p.r.URL.Path, strings.Join(p.Header()["Allow"], ", ")))
	default:
		p.ResponseWriter.WriteHeader(code)
	}
}

func (p *plainError) refuse(code int, err error) {
	p.said = true
	refuse(p.ResponseWriter, code, err)
}

func (p *plainError) Write(b []byte) (int, error) {
	if p.said {
		return len(b), nil
	}
	return p.ResponseWriter.Write(b)
}
