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

	"github.com/bmqelect/bmqelect/cluster/findings"
)

const (
	// maxDials bounds the addresses tried at once.
	maxDials = 8
	// retryGrowth bounds the back-off of a node that is alone, in units of Timing.Retry.
	retryGrowth = 8
	// quietFailures is how often in a row a join address may fail before a person
	// is told: a cluster that is just being started stays silent.
	quietFailures = 3
)

// joiner tries, for as long as the node runs, the addresses at which members may
// be found and are not.
type joiner struct {
	g     *Gossip
	local func(netip.AddrPort) bool
	// failed counts, for each join setting, the rounds in a row that it failed.
	failed map[string]int
}

func (g *Gossip) newJoiner(bound, advertised netip.AddrPort) *joiner {
	return &joiner{g: g, local: ownAddress(bound, advertised), failed: map[string]int{}}
}

// run tries at once, then with back-off while alone and at a slow pace in company.
func (j *joiner) run(ctx context.Context) {
	pace := j.g.cfg.Timing.Retry
	for ctx.Err() == nil {
		j.round(ctx)
		wait := j.g.cfg.Timing.Rejoin
		if len(j.g.table.aliveAt()) == 0 {
			wait = pace
			pace = min(2*pace, retryGrowth*j.g.cfg.Timing.Retry)
		} else {
			pace = j.g.cfg.Timing.Retry
		}
		j.sleep(ctx, wait)
	}
}

// sleep waits about d, less when woken, but never so short that waking it again
// and again makes it spin.
func (j *joiner) sleep(ctx context.Context, d time.Duration) {
	pause(ctx, nil, min(d, j.g.cfg.Timing.Retry)/2)
	pause(ctx, j.g.listener.join, jitter(d))
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

// jitter keeps nodes that were started together from trying together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// round tries every setting and every lost address once.
func (j *joiner) round(ctx context.Context) {
	alive := j.g.table.aliveAt()
	settings := map[string]lookup{}
	targets := map[netip.AddrPort]error{}
	for _, setting := range j.g.cfg.Join {
		addrs, err := j.g.cfg.resolve(ctx, setting)
		settings[setting] = lookup{addrs, err}
		j.aim(targets, alive, addrs...)
	}
	for _, addr := range slices.Concat(j.g.cfg.KnownPeers, j.g.table.lost()) {
		if at, err := netip.ParseAddrPort(addr); err == nil {
			j.aim(targets, alive, at)
		}
	}
	j.try(targets)
	if ctx.Err() != nil {
		return
	}
	for setting, found := range settings {
		j.account(setting, found.outcome(targets))
	}
}

// lookup is what a join setting stood for in one round.
type lookup struct {
	addrs []netip.AddrPort
	err   error
}

// outcome returns nil if one of the addresses is this node, a live member, or
// has answered.
func (l lookup) outcome(tried map[netip.AddrPort]error) error {
	if l.err != nil {
		return l.err
	}
	var failures []string
	for _, addr := range l.addrs {
		if tried[addr] == nil {
			return nil
		}
		failures = append(failures, tried[addr].Error())
	}
	return errors.New(strings.Join(failures, "; "))
}

// aim adds the addresses that are neither this node nor a live member.
func (j *joiner) aim(targets map[netip.AddrPort]error, alive map[string]bool, addrs ...netip.AddrPort) {
	for _, addr := range addrs {
		if !j.local(addr) && !alive[addr.String()] {
			targets[addr] = nil
		}
	}
}

// try exchanges state with all targets, some at once, and notes who failed.
func (j *joiner) try(targets map[netip.AddrPort]error) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		slots = make(chan struct{}, maxDials)
	)
	for _, addr := range slices.Collect(maps.Keys(targets)) {
		slots <- struct{}{}
		wg.Go(func() {
			err := j.tryOne(addr)
			mu.Lock()
			targets[addr] = err
			mu.Unlock()
			<-slots
		})
	}
	wg.Wait()
}

func (j *joiner) tryOne(addr netip.AddrPort) error {
	if _, err := j.g.list.Join([]string{addr.String()}); err != nil {
		j.g.table.notAt(addr.String())
		if first := errors.Unwrap(err); first != nil {
			err = first // the library lists the errors of all addresses on several lines
		}
		if by, text, ok := refusedBy(err); ok {
			j.g.cfg.Found(findings.WrongCluster, by, fmt.Sprintf("%s says: %s", addr, text))
		}
		j.g.log.Debug("no member found at address", "gossip", addr, "error", err)
		return fmt.Errorf("exchange state with %s: %w", addr, err)
	}
	return nil
}

// account says once that a join setting began to fail, and once that it recovered.
func (j *joiner) account(setting string, err error) {
	failures := j.failed[setting]
	switch {
	case err == nil && failures >= quietFailures:
		j.g.log.Info("join address answers again", "join", setting)
	case err != nil && failures+1 == quietFailures:
		j.g.log.Warn("join address does not answer; it is tried again for as long as this node runs",
			"join", setting, "error", err)
	}
	if err == nil {
		j.failed[setting] = 0
	} else {
		j.failed[setting]++
	}
}

// ownAddress returns whether an address reaches this very process.
func ownAddress(bound, advertised netip.AddrPort) func(netip.AddrPort) bool {
	return func(addr netip.AddrPort) bool {
		if addr == advertised || addr == bound {
			return true
		}
		return bound.Addr().IsUnspecified() && addr.Port() == bound.Port() && localAddrs()[addr.Addr()]
	}
}
