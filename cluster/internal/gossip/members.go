package gossip

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	// maxGone bounds how many members are remembered that left or died.
	maxGone = 128
	// maxOthers bounds how many members without a vote are accepted: each of them is dialed,
	// and anybody who reaches the port can invent some.
	maxOthers = 256
	// maxNewcomers bounds how many members without a vote and with new names are accepted
	// within newcomersEvery. memberlist forgets the dead sooner than that. So its table holds
	// at most 32 voters, 2 maxOthers and 2 maxNewcomers, which fits in an exchange of states.
	maxNewcomers   = 256
	newcomersEvery = 5 * time.Minute
)

// members is this package's own table of the members. memberlist hands out pointers to data
// that it goes on writing, forgets the dead, and does not say which of them left. members
// receives its callbacks. Most of them come under memberlist's lock: so a callback only notes
// the change, and wakes the goroutine that acts on it.
type members struct {
	self   elector.NodeID
	voter  func(elector.NodeID) bool
	log    hclog.Logger
	join   chan struct{} // wakes the joiner
	wakeUp chan struct{} // wakes run

	mu   sync.Mutex
	own  wireMeta
	byID map[elector.NodeID]Member
	gone []elector.NodeID // left or dead, oldest first
	// moved holds addresses at which another process with a member's name was
	// seen, while the member still counted as alive elsewhere.
	moved map[elector.NodeID]string
	// newcomers counts the new names without a vote since newcomersSince.
	newcomers      int
	newcomersSince time.Time

	changed []elector.NodeID    // members to deliver, each once
	warned  limit.Log[struct{}] // about members that were refused
}

func newMembers(cfg *Config, log hclog.Logger) *members {
	if cfg.Voter == nil {
		cfg.Voter = func(elector.NodeID) bool { return false }
	}
	return &members{
		self: cfg.Node, voter: cfg.Voter, log: log, own: wireMeta{Meta: cfg.Meta},
		join: make(chan struct{}, 1), wakeUp: make(chan struct{}, 1),
		byID: map[elector.NodeID]Member{}, moved: map[elector.NodeID]string{},
	}
}

// wake puts an element into c, whose capacity is one, unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// NotifyJoin is called for a member that appeared or came back.
func (ms *members) NotifyJoin(n *memberlist.Node) { ms.note(StateAlive, n) }

// NotifyUpdate is called for a member with changed metadata.
func (ms *members) NotifyUpdate(n *memberlist.Node) { ms.note(StateAlive, n) }

// NotifyLeave is called for a member that left or died.
func (ms *members) NotifyLeave(n *memberlist.Node) {
	if w, err := decodeMeta(n.Meta); err == nil && w.Leaving {
		ms.note(StateLeft, n)
		return
	}
	ms.note(StateDead, n)
	wake(ms.join)
}

// note records the state of another member.
func (ms *members) note(state State, n *memberlist.Node) {
	w, err := decodeMeta(n.Meta)
	if n.Name == string(ms.self) || err != nil { // NotifyAlive lets in no unreadable member
		return
	}
	ms.put(Member{elector.NodeID(n.Name), n.Address(), w.Meta, state})
	wake(ms.wakeUp)
	ms.log.Debug("member", "peer", n.Name, "state", state, "gossip", n.Address(), "mesh", w.MeshAddr)
}

// put replaces the entry of a member.
func (ms *members) put(m Member) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.byID[m.Node] = m
	if !slices.Contains(ms.changed, m.Node) {
		ms.changed = append(ms.changed, m.Node)
	}
	ms.gone = slices.DeleteFunc(ms.gone, func(n elector.NodeID) bool { return n == m.Node })
	if m.State != StateAlive {
		ms.gone = append(ms.gone, m.Node)
	}
	if len(ms.gone) > maxGone {
		delete(ms.moved, ms.gone[0])
		delete(ms.byID, ms.gone[0])
		ms.gone = ms.gone[1:]
	}
}

// run delivers the members that changed, in their latest state, until stop is closed.
func (ms *members) run(stop <-chan struct{}, deliver func(Member)) {
	for {
		select {
		case <-stop:
			return
		case <-ms.wakeUp:
		}
		for m, ok := ms.next(); ok; m, ok = ms.next() {
			select {
			case <-stop:
				return
			default:
				deliver(m)
			}
		}
	}
}

func (ms *members) next() (m Member, ok bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if len(ms.changed) == 0 {
		return m, false
	}
	node := ms.changed[0]
	ms.changed = ms.changed[1:]
	if m, ok = ms.byID[node]; !ok {
		m = Member{Node: node, State: StateDead} // so many others died that it was forgotten
	}
	return m, true
}

// NotifyAlive refuses members with an unusable name or unusable metadata, and those for
// which there is no room. memberlist calls it for every message, and strangers can send
// many, so the reason is logged at most once a minute.
func (ms *members) NotifyAlive(n *memberlist.Node) error {
	_, err := decodeMeta(n.Meta)
	if bad := elector.NameProblem(elector.NodeID(n.Name)); bad != "" {
		err = fmt.Errorf("its name is %s", bad)
	}
	if err == nil {
		err = checkVersions(n)
	}
	if err == nil && !ms.hasRoom(elector.NodeID(n.Name)) {
		err = errors.New("there are too many members without a vote")
	}
	if err == nil {
		return nil
	}
	if _, due := ms.warned.Due(struct{}{}); due {
		ms.log.Warn("member kept out: bad name, metadata or version, or too many have no vote",
			"peer", n.Name, "gossip", n.Address(), "error", err)
	}
	return err
}

// hasRoom reports whether a member may be accepted. This node, voters, and members that are
// alive already always may.
func (ms *members) hasRoom(node elector.NodeID) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if node == ms.self || ms.byID[node].State == StateAlive || ms.voter(node) {
		return true
	}
	others := 0
	for _, m := range ms.byID {
		if m.State == StateAlive && !ms.voter(m.Node) {
			others++
		}
	}
	_, known := ms.byID[node]
	if others >= maxOthers || known {
		return others < maxOthers
	}
	if time.Since(ms.newcomersSince) > newcomersEvery {
		ms.newcomers, ms.newcomersSince = 0, time.Now()
	}
	ms.newcomers++
	return ms.newcomers <= maxNewcomers
}

// NotifyConflict is called if a process claims the name of a live member at another
// address. It usually is the same node, restarted before its death was noticed, so the
// joiner tries that address. The handshake of the mesh refuses a second process of one name.
func (ms *members) NotifyConflict(existing, other *memberlist.Node) {
	ms.mu.Lock()
	if _, known := ms.byID[elector.NodeID(existing.Name)]; known {
		ms.moved[elector.NodeID(existing.Name)] = other.Address()
		wake(ms.join)
	}
	ms.mu.Unlock()
}

// notAt removes addr from the addresses to which members may have moved.
func (ms *members) notAt(addr string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	maps.DeleteFunc(ms.moved, func(_ elector.NodeID, at string) bool { return at == addr })
}

// nodeAt returns the name of the member at a gossip address, or "".
func (ms *members) nodeAt(addr string) (node elector.NodeID) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.byID {
		if m.GossipAddr == addr && (node == "" || m.State == StateAlive) {
			node = m.Node
		}
	}
	return node
}

// known returns the members that are alive, and the voters that once were.
func (ms *members) known() (all []Member) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.byID {
		if m.State == StateAlive || ms.voter(m.Node) {
			all = append(all, m)
		}
	}
	return all
}

// alive returns the members that are alive.
func (ms *members) alive() (all []Member) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.byID {
		if m.State == StateAlive {
			all = append(all, m)
		}
	}
	return all
}

// addresses returns those of the members that are alive, and others where one may be found.
func (ms *members) addresses() (alive, lost []string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	lost = slices.Collect(maps.Values(ms.moved))
	for _, m := range ms.byID {
		if m.State == StateAlive {
			alive = append(alive, m.GossipAddr)
		} else {
			lost = append(lost, m.GossipAddr)
		}
	}
	return alive, lost
}

// NodeMeta returns the encoded metadata of this node.
func (ms *members) NodeMeta(int) []byte {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	b, err := encodeMeta(ms.own)
	if err != nil {
		panic("gossip: metadata was checked at the start: " + err.Error())
	}
	return b
}

func (ms *members) setMeta(w wireMeta) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.own = w
}

// NotifyMsg, GetBroadcasts, LocalState and MergeRemoteState are for user messages of
// memberlist, which this package does not use.
func (ms *members) NotifyMsg([]byte) {}

// GetBroadcasts returns nothing.
func (ms *members) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing.
func (ms *members) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores what it gets.
func (ms *members) MergeRemoteState([]byte, bool) {}
