package loop

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
)

// checkEvery is the time between two checks of what was written.
const checkEvery = time.Second

// groups is what is durable of groups, or to become so, by name.
type groups = map[string]store.Durable

// persister writes terms and records to disk on a goroutine of its own. Requests that come during a
// write share the next transaction.
type persister struct {
	write func(g groups) error      // durable when it returns
	done  func(g groups, err error) // called after each write
	check func() error              // fails if what was written is gone

	mu      sync.Mutex
	wanted  groups
	notes   []func() error
	pending chan struct{} // has an element if anything waits
}

// request asks for d to be written of group, instead of what was requested before and is not
// written yet. A record that was requested stays so if d has none. It never waits.
func (p *persister) request(group string, d store.Durable) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == nil {
		p.wanted = groups{}
	}
	if d.Record == (elector.Record{}) {
		d.Record, d.Value = p.wanted[group].Record, p.wanted[group].Value
	}
	p.wanted[group] = d
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
func (p *persister) take() (wanted groups, notes []func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted, notes = p.wanted, p.notes
	p.wanted, p.notes = nil, nil
	return wanted, notes
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
		wanted, notes := p.take()
		if err == nil && len(wanted) > 0 {
			err = p.write(wanted)
		}
		for _, write := range notes {
			if err == nil {
				err = write()
			}
		}
		if len(wanted) > 0 || err != nil {
			p.done(wanted, err)
		}
		if err != nil {
			return
		}
	}
}
