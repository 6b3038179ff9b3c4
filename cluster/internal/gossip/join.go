package gossip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxDials bounds the addresses tried at once.
	maxDials = 8
	// retryGrowth bounds the back-off of a node that is alone, in units of Timing.Retry.
	retryGrowth = 8
	// quietFailures is after how many failures in a row a join address is logged: nothing is
	// logged while a cluster starts.
	quietFailures = 3
	// deafProbes is after how many probe periods without a packet a node that has members
	// logs that it receives none.
	deafProbes = 60
)

// Joined is the result of the newest try of a join setting.
type Joined struct {
	Setting string
	Self    bool  // all its addresses are this node's
	Err     error // why no member was found there; nil if one was, or if Self
}

// Joined returns the result of the newest try of each join setting, sorted by the setting;
// nil before the first try.
func (g *Gossip) Joined() []Joined {
	if all := g.joined.Load(); all != nil {
		return *all
	}
	return nil
}

// joiner tries, as long as the node runs, the addresses at which members may be found and
// none is known.
type joiner struct {
	g *Gossip
	// failed counts, for each join setting, the rounds in a row that it failed.
	failed map[string]int

	packets uint64    // the count of received packets, in the last round
	deaf    time.Time // since when no packet was received although there are members
	warned  bool      // that no packet is received
}

// run tries at once, then with back-off while it knows no member, and else at a slow pace.
// However often it is woken, there is a pause between two rounds.
func (j *joiner) run(ctx context.Context) {
	t := j.g.cfg.Timing
	pace := t.Retry
	for ctx.Err() == nil {
		j.round(ctx)
		alive, _ := j.g.members.addresses()
		wait := t.Rejoin
		if len(alive) == 0 {
			wait = pace
			pace = min(2*pace, retryGrowth*t.Retry)
		} else {
			pace = t.Retry
		}
		j.listen(len(alive) > 0)
		pause(ctx, nil, min(wait, t.Retry)/2)
		// Nodes that were started together must not try together.
		pause(ctx, j.g.members.join, wait/2+rand.N(wait/2+1))
	}
}

// pause waits for d, for wake, or for ctx.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// round tries every setting and every lost address once, at most maxDials at a time.
func (j *joiner) round(ctx context.Context) {
	alive, lost := j.g.members.addresses()
	results := map[netip.AddrPort]error{}
	aim := func(addrs ...netip.AddrPort) {
		for _, addr := range addrs {
			if !j.isSelf(addr) && !slices.Contains(alive, addr.String()) {
				results[addr] = nil
			}
		}
	}
	found, unresolved := map[string][]netip.AddrPort{}, map[string]error{}
	for _, setting := range j.g.cfg.Join {
		found[setting], unresolved[setting] = j.g.cfg.resolve(ctx, setting)
		aim(found[setting]...)
	}
	for _, addr := range slices.Concat(j.g.cfg.KnownPeers, lost) {
		if at, err := netip.ParseAddrPort(addr); err == nil {
			aim(at)
		}
	}

	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxDials)
	for _, addr := range slices.Collect(maps.Keys(results)) {
		slots <- struct{}{}
		wg.Go(func() {
			err := j.try(addr)
			mu.Lock()
			results[addr] = err
			mu.Unlock()
			<-slots
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	var outcomes []Joined
	for _, setting := range slices.Sorted(maps.Keys(found)) {
		addrs, err := found[setting], unresolved[setting]
		if err == nil {
			err = failure(addrs, results)
		}
		j.account(setting, err)
		isOther := func(a netip.AddrPort) bool { return !j.isSelf(a) }
		self := err == nil && !slices.ContainsFunc(addrs, isOther)
		outcomes = append(outcomes, Joined{setting, self, err})
	}
	j.g.joined.Store(&outcomes)
}

// try exchanges states with the member at addr.
func (j *joiner) try(addr netip.AddrPort) error {
	_, err := j.g.list.Join([]string{addr.String()})
	if err == nil {
		return nil
	}
	j.g.members.notAt(addr.String())
	if first := errors.Unwrap(err); first != nil {
		err = first // the library lists the errors of all addresses on several lines
	}
	j.g.log.Debug("no member found at address", "gossip", addr, "error", err)
	text := strings.NewReplacer(fmt.Sprintf("failed to join %s: ", addr), "", // the address once
		fmt.Sprintf("dial %s for gossip: ", addr), "", "remote error: ", "").Replace(err.Error())
	return fmt.Errorf("exchange state with %s: %s", addr, text)
}

// failure returns nil if one of addrs is this node, a live member, or has answered.
func failure(addrs []netip.AddrPort, results map[netip.AddrPort]error) error {
	var texts []string
	for _, addr := range addrs {
		if results[addr] == nil {
			return nil
		}
		texts = append(texts, results[addr].Error())
	}
	return errors.New(strings.Join(texts, "; "))
}

// account logs once that a join setting fails, and once that it works again.
func (j *joiner) account(setting string, err error) {
	failures := j.failed[setting]
	j.failed[setting]++
	switch {
	case err == nil:
		j.failed[setting] = 0
		if failures >= quietFailures {
			j.g.log.Info("join address answers again", "join", setting)
		}
	case failures+1 == quietFailures:
		j.g.log.Warn("join address does not answer, or belongs to another cluster; it is tried again",
			"join", setting, "cluster", j.g.cfg.Cluster, "error", err)
	}
}

// listen warns once if no packet is received although there are members. Each of them
// sends several a second, so streams pass and packets do not.
func (j *joiner) listen(company bool) {
	packets := j.g.arrived()
	if !company || packets != j.packets {
		j.packets, j.deaf = packets, time.Time{}
		return
	}
	if j.deaf.IsZero() {
		j.deaf = time.Now()
	}
	if !j.warned && time.Since(j.deaf) >= deafProbes*j.g.cfg.Timing.Probe {
		j.warned = true
		j.g.log.Warn("no UDP packet of any member arrives: a firewall drops UDP, or the address is wrong",
			"advertised", j.g.addr)
	}
}
