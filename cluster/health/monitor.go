package health

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/words"
)

// Monitor watches probes until Close. Its methods may be called from any goroutine.
type Monitor struct {
	o       Options
	report  func(unfit string)
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	probes []*watched
	said   string
}

// watched is a probe, and what is known of it.
type watched struct {
	Probe
	ended  chan error // gets the result of the check that goes on; nil if none does
	began  time.Time  // when it began
	row    int        // results in a row: successes, or failures if it is negative
	passed bool       // a check has succeeded
	status Status
}

// closeTime is how long Close waits for a check. Only one that hangs takes longer.
const closeTime = 500 * time.Millisecond

// Watch begins to watch probes, which must be valid. It returns when each has had its first
// result, at most after the longest time-out. report gets the reasons of all probes that fail, ""
// for none, whenever these change; like Options.Changed it must neither wait nor call the node. A
// program counts as fit before the first report.
func Watch(o Options, report func(unfit string)) *Monitor {
	ctx, stop := context.WithCancel(context.Background())
	m := &Monitor{o: o.withDefaults(), report: report, stop: stop}
	for _, p := range o.Probes {
		p.Action = cmp.Or(p.Action, "a check")
		p.Timeout = cmp.Or(p.Timeout, m.o.Timeout)
		p.Failures = cmp.Or(p.Failures, m.o.Failures)
		m.probes = append(m.probes, &watched{Probe: p, status: Status{Name: p.Name, Fit: true}})
	}
	var first sync.WaitGroup
	for _, p := range m.probes {
		first.Go(func() { m.check(ctx, p) })
	}
	first.Wait()
	for _, p := range m.probes {
		m.running.Go(func() { m.watch(ctx, p) })
	}
	return m
}

// watch checks a probe in each period. It leaves out those that passed during a check: a check that
// hangs is one failure a period.
func (m *Monitor) watch(ctx context.Context, p *watched) {
	tick := time.NewTicker(m.o.Period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		m.check(ctx, p)
		select {
		case <-tick.C:
		default:
		}
	}
}

// Close ends the watch. It waits for checks that end when their ctx does, at most half a second.
func (m *Monitor) Close() {
	m.stop()
	m.running.Wait()
}

// Status returns what each probe has found, in the order of Options.Probes.
func (m *Monitor) Status() (all []Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.probes {
		all = append(all, p.status)
	}
	return all
}

// check waits for the result of a check, at most until its time-out. It begins a check unless one
// goes on: a disk that hangs then holds one goroutine, not one more each period.
func (m *Monitor) check(ctx context.Context, p *watched) {
	select {
	case <-p.ended: // after its time-out, so its result is of no use
		p.ended = nil
	default:
	}
	if p.ended == nil {
		ended := make(chan error, 1)
		p.ended, p.began = ended, time.Now()
		limited, cancel := context.WithTimeout(ctx, p.Timeout)
		go func() {
			defer cancel()
			ended <- p.Check(limited)
		}()
	}
	late := time.NewTimer(time.Until(p.began.Add(p.Timeout)))
	defer late.Stop()
	var err error
	select {
	case err = <-p.ended:
		p.ended = nil
	case <-late.C:
	case <-ctx.Done():
		select {
		case <-p.ended:
		case <-time.After(closeTime):
		}
		return
	}
	took := time.Since(p.began)
	if took >= p.Timeout {
		err = fmt.Errorf("%s takes longer than %s", p.Action, p.Timeout)
	}
	m.note(p, took, err)
}

// note takes in a result, and tells what it changes.
func (m *Monitor) note(p *watched, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &p.status
	was := s.Fit
	s.Seconds = took.Seconds()
	if err == nil {
		p.row = max(p.row, 0) + 1
		s.Fit = s.Fit || !p.passed || p.row >= m.o.Successes
		p.passed = true
	} else {
		p.row = min(p.row, 0) - 1
		s.Failures++
		s.Fit = s.Fit && p.passed && -p.row < p.Failures
		s.Why = wordsOf(err)
	}
	if s.Fit && err == nil {
		s.Why = ""
	}
	if s.Fit != was {
		m.o.Changed(*s)
	}
	m.tell()
}

// tell reports why the program is not fit, if that has changed. The lock is held.
func (m *Monitor) tell() {
	var why []string
	for _, p := range m.probes {
		if !p.status.Fit {
			why = append(why, p.Name+": "+p.status.Why)
		}
	}
	if text := strings.Join(why, "; "); text != m.said {
		m.said = text
		m.report(text)
	}
}

// maxWords is how many bytes of a probe's words are kept: they reach other members, too.
const maxWords = 200

func wordsOf(err error) string {
	return cmp.Or(words.Printable(strings.TrimSpace(err.Error()), maxWords), "no reason given")
}
