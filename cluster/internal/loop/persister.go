package loop

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/elector"
)

// checkEvery is the time between two looks at what was written.
const checkEvery = time.Second

// persister writes terms to disk beside the driver. What is asked for while a
// write runs goes into one transaction after it.
type persister struct {
	write func(terms map[string]elector.Terms) error      // durable when it returns
	done  func(terms map[string]elector.Terms, err error) // called here after each write
	check func() error                                    // whether that is still there

	mu      sync.Mutex
	wanted  map[string]elector.Terms
	notes   []func() error
	pending chan struct{} // has an element if anything waits
}

func newPersister(
	write func(map[string]elector.Terms) error, done func(map[string]elector.Terms, error),
) *persister {
	return &persister{write: write, done: done, pending: make(chan struct{}, 1)}
}

// request asks for the terms of group to be written, in place of those that it was asked
// for before; it never waits.
func (p *persister) request(group string, terms elector.Terms) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == nil {
		p.wanted = map[string]elector.Terms{}
	}
	p.wanted[group] = terms
	guarded.Wake(p.pending)
}

// note asks for something else to be done, by write, after what was asked for before is on
// disk; it never waits.
func (p *persister) note(write func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, write)
	guarded.Wake(p.pending)
}

// take empties what waits.
func (p *persister) take() (terms map[string]elector.Terms, notes []func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	terms, notes = p.wanted, p.notes
	p.wanted, p.notes = nil, nil
	return terms, notes
}

// run writes until quit, and then what was asked for before it; or until a write or a
// check fails: then nobody knows what the disk holds, so nothing is written any more.
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
