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

// rememberer writes the members' addresses to disk, so that the next start finds
// the cluster even if no join address answers by then. It is a convenience: a write
// that fails ends nothing and is tried again until it succeeds.
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

// run writes until quit, and once more then if something is left to be written.
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

// toRemember are where the other members may be found again: all voters, and as many others as
// are worth it.
func (ms *members) toRemember() []string {
	var voters, others []string
	known := ms.known()
	slices.SortFunc(known, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	for _, m := range known {
		if slices.Contains(ms.voters, m.Node) {
			voters = append(voters, m.GossipAddr)
		} else if len(others) < maxOtherPeers {
			others = append(others, m.GossipAddr)
		}
	}
	return append(voters, others...)
}
