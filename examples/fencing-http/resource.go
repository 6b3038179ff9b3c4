package main

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/lsn"
)

const maxValue = 1 << 20 // bytes

// Resource is one value behind HTTP: GET it, and PUT it with a Fencing-Token
// that does not go backwards. It is safe for concurrent use; one process at a
// time may use its file.
type Resource struct {
	file string
	log  hclog.Logger

	mu    sync.Mutex // orders the writes as the fence admits them
	fence *lsn.Fence
	saved state
}

// OpenResource returns the resource that the file keeps; no file is an empty
// value that any leader may write.
func OpenResource(file string, log hclog.Logger) (*Resource, error) {
	saved, err := load(file)
	if err != nil {
		return nil, err
	}
	return &Resource{file: file, log: log, fence: lsn.NewFence(saved.Fence), saved: saved}, nil
}

// ServeHTTP answers one request.
func (r *Resource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
		r.get(w)
	case http.MethodPut:
		r.put(w, req)
	default:
		w.Header().Set("Allow", "GET, PUT")
		newProblem(http.StatusMethodNotAllowed, "want GET or PUT").answer(w)
	}
}

func (r *Resource) get(w http.ResponseWriter) {
	r.mu.Lock()
	saved := r.saved
	r.mu.Unlock()
	w.Header().Set(tokenHeader, saved.Fence.String())
	_, _ = w.Write(saved.Value) // a caller that is gone needs no answer
}

func (r *Resource) put(w http.ResponseWriter, req *http.Request) {
	token, bad := tokenOf(req)
	if bad != nil {
		bad.answer(w)
		return
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxValue))
	if err != nil {
		newProblem(http.StatusRequestEntityTooLarge, "read the value: "+err.Error()).answer(w)
		return
	}
	err = r.write(token, value)
	var stale *lsn.StaleError
	switch {
	case errors.As(err, &stale):
		r.log.Warn("refused: a newer leader has written", "token", stale.Got, "newest", stale.Newest,
			"peer", req.RemoteAddr)
		refusal(stale).answer(w)
	case err != nil:
		r.log.Error("not saved", "token", token, "error", err)
		newProblem(http.StatusInternalServerError, "the value could not be saved").answer(w)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// tokenOf returns the token of a request, or what is wrong with it.
func tokenOf(req *http.Request) (lsn.LSN, *problem) {
	text := req.Header.Get(tokenHeader)
	if text == "" {
		p := newProblem(http.StatusPreconditionRequired, "want a header "+tokenHeader+` such as "5.2"`)
		return lsn.LSN{}, &p
	}
	token, err := lsn.Parse(text)
	if err == nil && !token.Term.Led() {
		err = errors.New(text + " is of no leadership")
	}
	if err != nil {
		p := newProblem(http.StatusBadRequest, tokenHeader+": "+err.Error())
		return lsn.LSN{}, &p
	}
	return token, nil
}

// write asks the fence, then saves: when it returns, value and fence are on
// disk, together. If they could not be saved, the fence stays ahead of the
// value, which is the safe side.
func (r *Resource) write(token lsn.LSN, value []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fence.Admit(token); err != nil {
		return err
	}
	next := state{Fence: r.fence.Newest(), Value: value}
	if err := next.save(r.file); err != nil {
		return err
	}
	r.saved = next
	return nil
}
