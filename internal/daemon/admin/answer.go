package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Problem is an error in the form of RFC 9457. Its type is about:blank: Status says what kind
// of error it is, Detail what happened and what would be right.
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

func answer(w http.ResponseWriter, v any) {
	respond(w, "application/json", http.StatusOK, v)
}

func respond(w http.ResponseWriter, kind string, code int, v any) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	// The server's own deadline has passed if the work took long.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stall))
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // an error means that the client is gone
}

// posted decodes a body strictly: one JSON object, or nothing, which stands for the defaults.
func posted[T any](handle func(http.ResponseWriter, *http.Request, T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var into T
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		text = bytes.TrimSpace(text)
		if err == nil && len(text) > 0 {
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			if err = dec.Decode(&into); err == nil {
				switch rest := text[dec.InputOffset():]; {
				case text[0] != '{': // null decodes into any type
					err = errors.New("it must be one JSON object, or empty")
				case len(rest) > 0:
					err = fmt.Errorf("there is more after the JSON object: %.20q", rest)
				case strings.ContainsRune(fmt.Sprint(into), utf8.RuneError): // what decoding makes of them
					err = errors.New("it has a text that is not UTF-8, or with half a surrogate pair or U+FFFD: " +
						"names must be valid UTF-8")
				}
			}
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, fmt.Errorf("the body of %s %s: %w", r.Method, r.URL.Path, err))
			return
		}
		handle(w, r, into)
	}
}
