package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
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

// Tokens are fencing tokens by partition.
type Tokens map[int]lsn.LSN

// Question is what a worker sends to the leader.
type Question struct {
	Node    cluster.NodeID
	Working Tokens // what it works on
	Ended   Tokens // the newest tokens that it never works under again
}

// assignment gives a partition to a worker; its zero value gives it to nobody.
type assignment struct {
	worker  cluster.NodeID
	token   lsn.LSN
	expires time.Time // from then on the worker has stopped, unless it asks again
}

// leader assigns partitions while its node leads.
type leader struct {
	token func() (lsn.LSN, error) // fails once the node does not lead
	log   hclog.Logger
	opens time.Time // from then on every grant of earlier leaders has expired

	mu       sync.Mutex
	asked    map[cluster.NodeID]time.Time // by the workers that are alive
	assigned [partitions]assignment
}

// answer grants a worker partitions, for one grant's time from when it began to ask.
func (l *leader) answer(q Question) (Tokens, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, granted := time.Now(), Tokens{}
	l.asked[q.Node] = now
	silent := func(_ cluster.NodeID, at time.Time) bool { return now.Sub(at) >= expiry }
	maps.DeleteFunc(l.asked, silent)
	for p := range l.assigned {
		a, owner := &l.assigned[p], l.owner(p)
		if !a.token.IsZero() && (a.token == q.Ended[p] || !now.Before(a.expires)) {
			*a = assignment{} // free: the worker said so, or its grant has expired
		}
		if token := q.Working[p]; a.token.Less(token) { // an earlier leader granted it
			*a = assignment{q.Node, token, now.Add(expiry)}
		}
		if a.worker == "" && !now.Before(l.opens) {
			token, err := l.token()
			if err != nil {
				return nil, err
			}
			l.log.Info("assigned", "partition", p, "lsn", token, "to", owner)
			*a = assignment{owner, token, now.Add(expiry)}
		}
		if a.worker == q.Node && owner == q.Node {
			a.expires, granted[p] = now.Add(expiry), a.token
		}
	}
	// The last check: this node has led until now, so the next leader waits for this grant.
	_, err := l.token()
	return granted, err
}

// owner chooses a partition's worker, so that a worker that comes or goes moves none of
// the others' partitions (rendezvous hashing).
func (l *leader) owner(p int) cluster.NodeID {
	return slices.MaxFunc(slices.Collect(maps.Keys(l.asked)), func(a, b cluster.NodeID) int {
		x, y := sha256.Sum256(fmt.Append(nil, p, a)), sha256.Sum256(fmt.Append(nil, p, b))
		return bytes.Compare(x[:], y[:])
	})
}

// worker works on what the leader granted, as long as the grant lasts. The tests read its
// log, and check that no two workers ever work on one partition at once.
type worker struct {
	node    cluster.NodeID
	log     hclog.Logger
	until   time.Time // when the grant ends
	working Tokens
	ended   Tokens // the newest token of each partition that it stopped working under
}

// question says what this worker works on.
func (w *worker) question() Question {
	if !time.Now().Before(w.until) {
		w.keep(nil)
	}
	return Question{w.node, w.working, w.ended}
}

// follow works on what is granted until then, and on nothing else.
func (w *worker) follow(granted Tokens, until time.Time) {
	w.keep(granted)
	w.until = until
	for p, token := range granted {
		// Another worker may have followed a token that was reported as ended.
		if w.working[p] != token && w.ended[p].Less(token) && time.Now().Before(until) {
			w.log.Info("begun", "partition", p, "lsn", token)
			w.working[p] = token
		}
	}
}

// keep ends the work on all other partitions.
func (w *worker) keep(granted Tokens) {
	for p, token := range w.working {
		if granted[p] != token {
			w.log.Info("ended", "partition", p, "lsn", token)
			delete(w.working, p)
			w.ended[p] = token
		}
	}
}

// work does something for each partition. A process may be paused between the look at
// the clock and the act: an act that others see must carry the token, and the other end
// must refuse an old one, as in examples/fencing-sql and examples/fencing-http.
func (w *worker) work() {
	for p, token := range w.working {
		if now := time.Now(); now.Before(w.until) {
			w.log.Info("worked", "partition", p, "lsn", token, "at", now)
		}
	}
}
