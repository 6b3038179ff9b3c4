package cluster

import (
	"sync"

	"github.com/bmqelect/bmqelect/lsn"
)

// persister writes terms to disk beside the driver. What is asked for while a
// write runs goes into one transaction after it.
type persister struct {
	write func(terms map[string]lsn.Term) error      // durable when it returns
	done  func(terms map[string]lsn.Term, err error) // called after each write, on the persister's goroutine

	mu      sync.Mutex
	wanted  map[string]lsn.Term
	pending chan struct{} // has an element if wanted is not empty
}

func newPersister(write func(map[string]lsn.Term) error, done func(map[string]lsn.Term, error)) *persister {
	return &persister{write: write, done: done, pending: make(chan struct{}, 1)}
}

// request asks for term of group to be written; it never waits.
func (p *persister) request(group string, term lsn.Term) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == nil {
		p.wanted = map[string]lsn.Term{}
	}
	p.wanted[group] = max(p.wanted[group], term)
	select {
	case p.pending <- struct{}{}:
	default:
	}
}

// take returns what is wanted, and wants nothing more.
func (p *persister) take() map[string]lsn.Term {
	p.mu.Lock()
	defer p.mu.Unlock()
	terms := p.wanted
	p.wanted = nil
	return terms
}

// run writes until quit, or until a write fails: after a failed fsync nobody
// knows what the disk holds, so nothing is written any more.
func (p *persister) run(quit <-chan struct{}) {
	for {
		select {
		case <-p.pending:
		case <-quit:
			return
		}
		terms := p.take()
		if len(terms) == 0 {
			continue
		}
		err := p.write(terms)
		p.done(terms, err)
		if err != nil {
			return
		}
	}
}
