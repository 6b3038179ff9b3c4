package loop

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/elector"
)

// checkEvery is the time between two checks of what was written.
const checkEvery = time.Second

// persister writes terms to disk on a goroutine of its own. Requests that come during a write
// share the next transaction.
type persister struct {
	write func(terms map[string]elector.Terms) error      // durable when it returns
	done  func(terms map[string]elector.Terms, err error) // called after each write
	check func() error                                    // fails if what was written is gone

	mu      sync.Mutex
	wanted  map[string]elector.Terms
	notes   []func() error
	pending chan struct{} // has an element if anything waits
}

// request asks for the terms of group to be written, instead of those that were requested
// before and are not written yet. It never waits.
func (p *persister) request(group string, terms elector.Terms) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == nil {
		p.wanted = map[string]elector.Terms{}
	}
	p.wanted[group] = terms
	guarded.Wake(p.pending)
}

// note asks for write to be called after all earlier requests are on disk. It never waits.
func (p *persister) note(write func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, write)
	guarded.Wake(p.pending)
}

// take returns the requests that wait, and forgets them.
func (p *persister) take() (terms map[string]elector.Terms, notes []func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	terms, notes = p.wanted, p.notes
	p.wanted, p.notes = nil, nil
	return terms, notes
}

// run writes until quit, and then what was requested before quit. It also ends when a write or a
// check fails: nobody knows then what the disk holds, so nothing more is written.
func (p *persister) run(quit <-chan struct{}) {
	look := time.NewTicker(checkEvery)
	defer look.Stop()
	for last := false; !last; {
		var err error
		select {
		case <-p.pending:
		case <-look.C:
			err = p.check()
		case <-quit:
			last = true
		}
		terms, notes := p.take()
		if err == nil && len(terms) > 0 {
			err = p.write(terms)
		}
		for _, write := range notes {
			if err == nil {
				err = write()
			}
		}
		if len(terms) > 0 || err != nil {
			p.done(terms, err)
		}
		if err != nil {
			return
		}
	}
}
