package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Work is what an application beside an elector does while its node leads: every WorkPeriod an
// item, which is a line that it flushes to a file in the node's directory, and a question to
// another service.
type Work struct {
	Dependency string // URL of that service
	Health     string // host:port where the application says at any path whether it can work
}

const (
	// WorkPeriod is the time between the starts of two items of work.
	WorkPeriod = 50 * time.Millisecond
	// answerTime is how long the other service may take.
	answerTime = time.Second
)

// worker is that application. It reports each item that was done while its node led.
type worker struct {
	spec   Spec
	member Member
	client http.Client
	file   *os.File
	items  sync.Mutex // held by the item that is worked on
}

func begin(spec Spec, member Member) (*worker, error) {
	w := &worker{spec: spec, member: member, client: http.Client{Timeout: answerTime}}
	var err error
	if w.file, err = os.Create(filepath.Join(spec.Dir, "work")); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", spec.Work.Health)
	if err != nil {
		return nil, err
	}
	go func() { panic(http.Serve(l, http.HandlerFunc(w.health))) }()
	go w.run()
	return w, nil
}

func (w *worker) run() {
	for range time.Tick(WorkPeriod) {
		began := Now()
		if !w.member.Leads() {
			continue
		}
		flush, err := w.item()
		if err == nil && w.member.Leads() { // otherwise another one may have done it, too
			write(Report{Kind: Worked, From: began, To: Now(),
				Took: []time.Duration{flush}, Text: w.spec.ID()})
		}
	}
}

func (w *worker) item() (flush time.Duration, err error) {
	w.items.Lock()
	defer w.items.Unlock()
	began := time.Now()
	if _, err := w.file.WriteAt([]byte(began.Format(time.RFC3339Nano)+"\n"), 0); err != nil {
		return 0, err
	}
	if err := w.file.Sync(); err != nil {
		return 0, err
	}
	return time.Since(began), w.ask(context.Background())
}

// ask asks the other service.
func (w *worker) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.spec.Work.Dependency, nil)
	if err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", w.spec.Work.Dependency, resp.Status)
	}
	return nil
}

// health answers as soon as no item is worked on. It needs no leadership.
func (w *worker) health(out http.ResponseWriter, r *http.Request) {
	w.items.Lock()
	defer w.items.Unlock()
	if err := w.ask(r.Context()); err != nil {
		http.Error(out, err.Error(), http.StatusServiceUnavailable)
	}
}
