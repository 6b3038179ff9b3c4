package gossip

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/elector"
)

// listener receives memberlist's callbacks, most of which come under its lock:
// each only writes down what happened and wakes whoever acts on it.
type listener struct {
	self   elector.NodeID
	voters []elector.NodeID
	table  *table
	events *eventQueue
	log    hclog.Logger
	join   chan struct{} // wakes the joiner
	clash  *clashes

	mu      sync.Mutex
	own     wireMeta
	refused map[string]string // member with unreadable metadata -> its address
	emptied time.Time         // when refused was, because it was full
	crowded time.Time         // when it was said last that there is no room
}

// NotifyJoin hears of a member that appeared or came back.
func (l *listener) NotifyJoin(n *memberlist.Node) { l.note(Joined, StateAlive, n) }

// NotifyUpdate hears of changed metadata.
func (l *listener) NotifyUpdate(n *memberlist.Node) { l.note(Updated, StateAlive, n) }

// NotifyLeave hears of a member that left or died.
func (l *listener) NotifyLeave(n *memberlist.Node) {
	if w, err := decodeMeta(n.Meta); err == nil && w.Leaving {
		l.note(Left, StateLeft, n)
		return
	}
	l.note(Failed, StateDead, n)
	signal(l.join)
}

func (l *listener) note(kind EventKind, state State, n *memberlist.Node) {
	if n.Name == string(l.self) {
		return
	}
	w, err := decodeMeta(n.Meta)
	if err != nil {
		return // NotifyAlive has let no such member in
	}
	m := Member{elector.NodeID(n.Name), n.Address(), w.meta(), state}
	l.table.put(m)
	l.events.push(Event{Kind: kind, Member: m})
	l.log.Debug("member "+kind.String(), "peer", m.Node, "gossip", m.GossipAddr, "mesh", m.MeshAddr)
}

// NotifyAlive keeps out members whose metadata cannot be read, and those for whom there
// is no room. memberlist asks at every message, so the reason is said once for each member
// and address, or once a minute.
func (l *listener) NotifyAlive(n *memberlist.Node) error {
	_, err := decodeMeta(n.Meta)
	if bad := elector.NameProblem(elector.NodeID(n.Name)); bad != "" {
		err = fmt.Errorf("its name is %s", bad)
	}
	if err != nil && l.firstRefusal(n) {
		l.log.Warn("member kept out: it speaks another version or is no bmqelect node",
			"peer", n.Name, "gossip", n.Address(), "error", err)
	}
	if err == nil && n.Name != string(l.self) && !l.table.admits(elector.NodeID(n.Name), l.voters) {
		err = errCrowded
		if l.crowdedDue() {
			l.log.Warn("member kept out: too many members have no vote", "peer", n.Name, "gossip", n.Address(), "most", maxOthers)
		}
	}
	return err
}

var errCrowded = errors.New("too many members have no vote")

func (l *listener) crowdedDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := time.Since(l.crowded) >= time.Minute
	if due {
		l.crowded = time.Now()
	}
	return due
}

func (l *listener) firstRefusal(n *memberlist.Node) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused[n.Name] == n.Address() {
		return false
	}
	if len(l.refused) >= maxGone { // strangers must fill neither the log nor this table for good
		if time.Since(l.emptied) < time.Minute {
			return false
		}
		l.emptied = time.Now()
		clear(l.refused)
	}
	l.refused[n.Name] = n.Address()
	return true
}

// NotifyConflict hears that a process claims the name of a live member at another
// address. Mostly it is the same node, restarted before its death was noticed.
func (l *listener) NotifyConflict(existing, other *memberlist.Node) {
	if existing.Name != string(l.self) {
		l.table.sawAt(elector.NodeID(existing.Name), other.Address())
	}
	l.clash.note(elector.NodeID(existing.Name), existing.Address(), other.Address())
}

// NodeMeta returns what this node tells the others.
func (l *listener) NodeMeta(int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := encodeMeta(l.own)
	if err != nil {
		panic("gossip: metadata was checked before it was stored: " + err.Error())
	}
	return b
}

// setMeta replaces what NodeMeta returns, or says why it cannot.
func (l *listener) setMeta(change func(*wireMeta)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.own
	change(&next)
	if _, err := encodeMeta(next.meta().wire(true)); err != nil {
		return err // checked with the goodbye in it, which must never fail to fit
	}
	l.own = next
	return nil
}

func (l *listener) meta() Meta {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own.meta()
}

// NotifyMsg, GetBroadcasts, LocalState and MergeRemoteState belong to user
// messages of memberlist, which this package does not use.
func (l *listener) NotifyMsg([]byte) {}

// GetBroadcasts returns nothing.
func (l *listener) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing.
func (l *listener) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores what it gets.
func (l *listener) MergeRemoteState([]byte, bool) {}
