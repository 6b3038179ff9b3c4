package gossip

import (
	"cmp"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	// rememberFirst is how long the first write waits for more members to be found.
	rememberFirst = time.Second
	// rememberEvery is the least time between two writes.
	rememberEvery = 10 * time.Second
	// maxOtherPeers is how many addresses of members without a vote are written.
	maxOtherPeers = 64
)

// rememberer writes the members' addresses to disk, so that the node finds the cluster after
// a restart even if no join address answers. It is a convenience: a failed write stops
// nothing, and is repeated until it succeeds.
type rememberer struct {
	save    func(addrs []string) error
	addrs   func() []string // what to save
	log     hclog.Logger
	changed chan struct{} // has an element if there may be something to save
	done    chan struct{} // closed when run has returned
	warned  limit.Log[struct{}]
}

func newRememberer(save func([]string) error, addrs func() []string, log hclog.Logger) *rememberer {
	return &rememberer{save: save, addrs: addrs, log: log, changed: make(chan struct{}, 1),
		done: make(chan struct{})}
}

// run writes until quit is closed, and then once more if there is something to save.
func (r *rememberer) run(quit <-chan struct{}) {
	defer close(r.done)
	saved, wait := true, rememberFirst
	for {
		if saved {
			select {
			case <-r.changed:
			case <-quit:
				return
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			saved, wait = r.write(), rememberEvery
		case <-quit:
			timer.Stop()
			r.write()
			return
		}
	}
}

func (r *rememberer) write() bool {
	err := r.save(r.addrs())
	if err == nil {
		return true
	}
	if _, due := r.warned.Due(struct{}{}); due {
		r.log.Warn("cannot write the members' addresses to disk; elections do not need them, and it is tried again",
			"error", err, "every", rememberEvery)
	}
	return false
}

// toRemember returns the addresses to save: those of all voters, and of at most maxOtherPeers
// other members that are alive.
func (ms *members) toRemember() []string {
	var voters, others []string
	known := ms.known()
	slices.SortFunc(known, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	for _, m := range known {
		if ms.voter(m.Node) {
			voters = append(voters, m.GossipAddr)
		} else if len(others) < maxOtherPeers {
			others = append(others, m.GossipAddr)
		}
	}
	return append(voters, others...)
}
