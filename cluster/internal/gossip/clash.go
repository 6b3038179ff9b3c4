package gossip

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// clashRepeat is how long a clash that was reported stays unsaid.
const clashRepeat = 10 * time.Minute

// clash is a name claimed at two addresses.
type clash struct {
	node      elector.NodeID
	kept, new string // gossip addresses: the one memberlist goes on using, and the other
}

func (c clash) tell(found func(findings.Kind, elector.NodeID, string)) {
	found(findings.NameTwice, c.node,
		fmt.Sprintf("two running processes are called %q: gossip is at %s for one and at %s for the other", c.node, c.kept, c.new))
}

// clashes tells a name used by two running processes, which a person must end,
// from a node restarted at a new address, which ends by itself: it pings both.
type clashes struct {
	mu       sync.Mutex
	waiting  map[elector.NodeID]clash
	reported map[clash]time.Time
	wake     chan struct{}
	found    func(findings.Kind, elector.NodeID, string)
}

func newClashes(found func(findings.Kind, elector.NodeID, string)) *clashes {
	return &clashes{
		found:    found,
		waiting:  map[elector.NodeID]clash{},
		reported: map[clash]time.Time{},
		wake:     make(chan struct{}, 1),
	}
}

// note asks for a check; memberlist repeats it at every message of the other process.
func (c *clashes) note(node elector.NodeID, kept, other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := clash{node, kept, other}
	if c.known(found) {
		found.tell(c.found)
		return
	}
	c.waiting[node] = found
	signal(c.wake)
}

func (c *clashes) take() []clash {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []clash
	for node, found := range c.waiting {
		all = append(all, found)
		delete(c.waiting, node)
	}
	return all
}

// firstTime reports whether found was not reported lately, and remembers it.
func (c *clashes) firstTime(found clash) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known(found) {
		return false
	}
	if len(c.reported) >= maxGone {
		clear(c.reported)
	}
	c.reported[found] = time.Now()
	return true
}

// known reports whether found was reported lately; the caller holds mu.
func (c *clashes) known(found clash) bool {
	at, ok := c.reported[found]
	return ok && time.Since(at) < clashRepeat
}

// watchClashes checks what was noted until stop is closed.
func (g *Gossip) watchClashes(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-g.listener.clash.wake:
			signal(g.listener.join)
		}
		for _, found := range g.listener.clash.take() {
			g.checkClash(found)
		}
	}
}

func (g *Gossip) checkClash(found clash) {
	mine := found.node == g.cfg.Node
	if !answers(g.list, found.node, found.new) || (!mine && !answers(g.list, found.node, found.kept)) {
		return
	}
	if !g.listener.clash.firstTime(found) {
		return
	}
	reportClash(g.log, found)
	found.tell(g.cfg.Found)
	m := g.member(found.node)
	m.GossipAddr = found.kept
	g.events.push(Event{Kind: Conflict, Member: m, OtherAddr: found.new})
}

func reportClash(log hclog.Logger, found clash) {
	log.Warn("two running processes use one node name: stop one or rename it",
		"peer", found.node, "used", found.kept, "ignored", found.new)
}

// answers reports whether a process with that name answers at addr now.
func answers(list *memberlist.Memberlist, node elector.NodeID, addr string) bool {
	udp, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return false
	}
	_, err = list.Ping(string(node), udp)
	return err == nil
}
