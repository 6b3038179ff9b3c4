package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/hashicorp/go-hclog"
)

const (
	partitions = 12
	grant      = time.Second
	// A leader waits 5 % longer for a grant to end, because two clocks may disagree.
	expiry = grant + grant/20
)

// Table is what the record keeps: the owner of each partition.
type Table [partitions]Owner

// Owner is a worker, and the LSN under which it owns a partition: that of the value in which it
// first stood there. In that value itself the LSN is zero, and take fills it in.
type Owner struct {
	Worker cluster.NodeID
	LSN    lsn.LSN
}

// shareOut returns the table with each partition at one of these workers, whose loads differ by one
// at most. It moves the fewest partitions that this takes.
func (t Table) shareOut(workers []cluster.NodeID) Table {
	for len(workers) > 0 {
		has, dead := map[cluster.NodeID][]int{}, -1
		for p, o := range t {
			has[o.Worker] = append(has[o.Worker], p)
			if !slices.Contains(workers, o.Worker) {
				dead = p
			}
		}
		load := func(a, b cluster.NodeID) int { return len(has[a]) - len(has[b]) }
		least, most := slices.MinFunc(workers, load), slices.MaxFunc(workers, load)
		switch {
		case dead >= 0:
			t[dead] = Owner{Worker: least}
		case load(most, least) > 1:
			t[has[most][0]] = Owner{Worker: least}
		default:
			return t
		}
	}
	return t
}

// Tokens are the LSNs under which a worker owns partitions.
type Tokens map[int]lsn.LSN

// leader assigns partitions while its node leads.
type leader struct {
	held  *cluster.Leadership
	log   hclog.Logger
	opens time.Time // from then on every grant of earlier leaders has expired

	mu      sync.Mutex
	asked   map[cluster.NodeID]time.Time // by the workers that are alive
	table   Table                        // committed
	moving  [partitions]bool             // to another owner: it is granted to nobody
	expires [partitions]time.Time        // from then on the owner has stopped, unless it asks again
}

// take takes up the committed table, and logs what is new to this leader.
func (l *leader) take(ctx context.Context, what string) error {
	r, err := l.held.Record(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.table
	if len(r.Value) > 0 {
		err = json.Unmarshal(r.Value, &l.table)
	}
	for p := range l.table {
		o := &l.table[p]
		if o.Worker != "" && o.LSN.IsZero() {
			o.LSN = r.ValueLSN
		}
		if *o != before[p] {
			l.moving[p] = false
			l.log.Info(what, "partition", p, "lsn", o.LSN, "to", o.Worker)
		}
	}
	return err
}

// answer grants a worker its partitions, for one grant's time from when it began to ask.
func (l *leader) answer(worker cluster.NodeID, granted Tokens) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.asked[worker] = now
	for p, o := range l.table {
		if o.Worker == worker && !l.moving[p] {
			l.expires[p], granted[p] = now.Add(expiry), o.LSN
		}
	}
	// The last check: this node has led until now, so the next leader waits for these grants.
	if !l.held.Valid() {
		return cluster.ErrNotLeader
	}
	return nil
}

// move publishes the table without the dead, and with equal loads, and then takes it up. If that
// fails it is not known which table the next leader will find, so this one must not go on.
func (l *leader) move(ctx context.Context) error {
	l.mu.Lock()
	now, next := time.Now(), l.table
	silent := func(_ cluster.NodeID, at time.Time) bool { return now.Sub(at) >= expiry }
	maps.DeleteFunc(l.asked, silent)
	for p, o := range l.table.shareOut(slices.Sorted(maps.Keys(l.asked))) {
		l.moving[p] = o != l.table[p] && !now.Before(l.opens)
		if l.moving[p] && !now.Before(l.expires[p]) {
			next[p] = o
		}
	}
	l.mu.Unlock()
	if next == l.table {
		return nil
	}
	value, _ := json.Marshal(next) // names and numbers
	if _, err := l.held.Publish(ctx, value); err != nil {
		return err
	}
	return l.take(ctx, "assigned")
}
