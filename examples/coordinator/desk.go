package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
	"github.com/bmqelect/bmqelect/lsn"
)

// tokens issues fencing tokens while this node leads: a *cluster.Leadership.
type tokens interface{ NextLSN() (lsn.LSN, error) }

// drift is the share of a grant by which clocks of two nodes may disagree about
// its length: one part in this many.
const drift = 20

// expiry is how long a leader waits for a grant to end by itself.
func expiry(grant time.Duration) time.Duration { return grant + grant/drift }

// desk is where a leader assigns partitions: the books of one leadership.
//
// A partition is given to another worker only when the one before is known to have
// stopped: it said so, or its grant has expired. A leader that begins knows of no
// grants, so it assigns nothing before those of its predecessors must have expired:
// they ended when their leadership did, as they need its tokens. What workers say
// they have in force meanwhile it takes over, so that a new leader does not
// interrupt anybody's work.
type desk struct {
	tokens  tokens
	journal *audit.Journal
	grant   time.Duration

	mu    sync.Mutex
	opens time.Time // when predecessors' grants have expired
	asked map[cluster.NodeID]time.Time
	books []entry // one for each partition
}

// entry is a partition's assignment; the zero entry is none.
type entry struct {
	to      cluster.NodeID
	lsn     lsn.LSN
	expires time.Time // when it ends unless it is granted again
	revoked bool      // it will not be
}

func newDesk(t tokens, j *audit.Journal, partitions int, grant time.Duration) *desk {
	return &desk{
		tokens: t, journal: j, grant: grant,
		opens: time.Now().Add(expiry(grant)), asked: map[cluster.NodeID]time.Time{}, books: make([]entry, partitions),
	}
}

// answer tells a worker what it may work on. It fails if this node leads no more.
func (d *desk) answer(q question) (answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.asked[q.Node] = now
	d.forget(now)
	d.learn(now, q)
	if q.Leaving {
		delete(d.asked, q.Node)
	}
	if err := d.assign(now); err != nil {
		return answer{}, err
	}
	// Last of all: where this fails nothing was granted, and where it does not this
	// node led until now.
	stamp, err := d.tokens.NextLSN()
	if err != nil {
		return answer{}, err
	}
	return answer{Stamp: stamp, Grant: d.grant, Assigned: d.renew(now, q.Node)}, nil
}

// forget drops what has expired: grants, and workers that do not ask any more.
func (d *desk) forget(now time.Time) {
	for p, e := range d.books {
		if !e.lsn.IsZero() && !now.Before(e.expires) {
			d.books[p] = entry{}
		}
	}
	maps.DeleteFunc(d.asked, func(_ cluster.NodeID, last time.Time) bool {
		return now.Sub(last) >= expiry(d.grant)
	})
}

// learn compares the books with what a worker says.
func (d *desk) learn(now time.Time, q question) {
	for p, s := range q.Partitions[:min(len(q.Partitions), len(d.books))] {
		e := &d.books[p]
		switch {
		case s.InForce && e.lsn.Less(s.Newest):
			*e = entry{to: q.Node, lsn: s.Newest, expires: now.Add(expiry(d.grant))}
		case !s.InForce && e.to == q.Node && !s.Newest.Less(e.lsn):
			*e = entry{} // it has ended; what is still on its way to the worker has not
		}
	}
}

// assign gives free partitions to the workers that have the fewest, and takes some
// from those that have more than their share.
func (d *desk) assign(now time.Time) error {
	workers := slices.Sorted(maps.Keys(d.asked))
	if now.Before(d.opens) || len(workers) == 0 {
		return nil
	}
	load := d.load()
	share := (len(d.books) + len(workers) - 1) / len(workers)
	for p := range d.books {
		e := &d.books[p]
		switch {
		case e.lsn.IsZero():
			to := slices.MinFunc(workers, func(a, b cluster.NodeID) int { return load[a] - load[b] })
			if err := d.give(now, p, to); err != nil {
				return err
			}
			load[to]++
		case !e.revoked && load[e.to] > share:
			e.revoked = true
			load[e.to]--
		}
	}
	return nil
}

// load is how many partitions each worker has, and keeps.
func (d *desk) load() map[cluster.NodeID]int {
	load := map[cluster.NodeID]int{}
	for _, e := range d.books {
		if !e.lsn.IsZero() && !e.revoked {
			load[e.to]++
		}
	}
	return load
}

// give assigns a partition that is free, on record before anybody is told.
func (d *desk) give(now time.Time, p int, to cluster.NodeID) error {
	next, err := d.tokens.NextLSN()
	if err != nil {
		return err
	}
	if err := d.journal.Append(audit.Line{Event: audit.Assigned, Partition: p, LSN: next, To: to}); err != nil {
		return err
	}
	d.books[p] = entry{to: to, lsn: next, expires: now.Add(expiry(d.grant))}
	return nil
}

// renew grants a worker what it has, but for what is revoked, for another while.
func (d *desk) renew(now time.Time, worker cluster.NodeID) map[int]lsn.LSN {
	granted := map[int]lsn.LSN{}
	for p := range d.books {
		if e := &d.books[p]; e.to == worker && !e.revoked {
			e.expires = now.Add(expiry(d.grant))
			granted[p] = e.lsn
		}
	}
	return granted
}
