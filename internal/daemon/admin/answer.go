package admin

import (
	"bytes"
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

// read decodes a body strictly: one JSON object, or nothing, which asks for the
// defaults. It answers the request itself if it cannot.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := decodeObject(http.MaxBytesReader(w, r.Body, maxBody), into)
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("the body of %s %s: %w", r.Method, r.URL.Path, err))
	}
	return err == nil
}

func decodeObject(body io.Reader, into any) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	rest := text[dec.InputOffset():]
	switch {
	case text[0] != '{':
		return errors.New("it must be one JSON object, or empty") // null is for any type
	case len(rest) > 0:
		return fmt.Errorf("there is more after the JSON object: %.20q", rest)
	}
	return nil
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
