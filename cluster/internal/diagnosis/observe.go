package diagnosis

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/netmesh"
)

const (
	// maxVoterText is how many bytes of voters' names are sent, as encoded.
	maxVoterText = 1 << 10
	// lostVoters is sent like a setting: as many names of voters that were declared lost as fit,
	// separated by spaces.
	lostVoters = "lost"
)

// notStanding is the name of the setting by which a node says why it does not stand for
// election. It is not in Config.Settings, so peers do not compare it.
const notStanding = "not-standing"

// Facts returns what the mesh tells the peers about this node. why says why it does not want
// to lead the default election; it is "" if the node does.
func (d *Diagnosis) Facts(why string) netmesh.Facts {
	f := d.facts()
	if why != "" {
		f.Settings = append(f.Settings, notStanding, words.Printable(why, netmesh.MaxNameLength))
	}
	return f
}

// facts returns the facts that do not change.
func (d *Diagnosis) facts() netmesh.Facts {
	voters := make([]string, len(d.cfg.Voters))
	for i, v := range d.cfg.Voters {
		voters[i] = string(v)
	}
	slices.Sort(voters)
	f := netmesh.Facts{VoterCount: uint(len(voters))}
	room, sum := maxVoterText, sha256.New()
	for _, v := range voters {
		sum.Write(binary.BigEndian.AppendUint16(nil, uint16(len(v))))
		sum.Write([]byte(v))
		if room -= len(v) + 3; room >= 0 {
			f.Voters = append(f.Voters, v)
		}
	}
	if len(voters) > 0 {
		f.VoterSum = sum.Sum(nil)[:16]
	}
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Settings)) {
		f.Settings = append(f.Settings, name, d.cfg.Settings[name])
	}
	lost := ""
	for _, v := range d.cfg.Lost {
		if more := strings.TrimPrefix(lost+" "+string(v), " "); len(more) <= netmesh.MaxNameLength {
			lost = more
		}
	}
	if lost != "" {
		f.Settings = append(f.Settings, lostVoters, lost)
	}
	return f
}

// Handler returns a Handler for the mesh that observes all calls and passes them on to next.
func (d *Diagnosis) Handler(next netmesh.Handler) netmesh.Handler { return watcher{next, d} }

// watcher stands between the mesh and its handler.
type watcher struct {
	netmesh.Handler
	d *Diagnosis
}

var _ netmesh.Observer = watcher{}

// LinkUp ends the findings that refused connections have caused: the peer was accepted.
func (w watcher) LinkUp(peer netmesh.PeerInfo) {
	w.d.forget(peer.Node, refusedLife)
	w.d.mu.Lock()
	w.d.clocks[peer.Node] = &clockRate{}
	delete(w.d.idle, peer.Node)
	w.d.mu.Unlock()
	w.Handler.LinkUp(peer)
}

// LinkDown ends the findings that the link has caused.
func (w watcher) LinkDown(peer elector.NodeID, ev elector.Evidence) {
	w.d.forget(peer, 0)
	w.d.mu.Lock()
	delete(w.d.clocks, peer)
	delete(w.d.idle, peer)
	w.d.mu.Unlock()
	w.Handler.LinkDown(peer, ev)
}

// Died ends the findings that the link has caused.
func (w watcher) Died(peer elector.NodeID, proof elector.Proof) {
	w.d.forget(peer, 0)
	w.Handler.Died(peer, proof)
}

// Told compares the facts of the two ends of a link.
func (w watcher) Told(peer elector.NodeID, theirs netmesh.Facts) {
	me, mine := w.d.cfg.Node, w.d.facts()
	w.d.finds(findings.VotersDiffer, peer, votersDiffer(me, peer, &mine, &theirs))
	w.d.finds(findings.SettingsDiffer, peer, settingsDiffer(me, peer, &mine, &theirs))
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	delete(w.d.idle, peer)
	for pair := range slices.Chunk(theirs.Settings, 2) {
		if pair[0] == notStanding {
			w.d.idle[peer] = words.Printable(pair[1], netmesh.MaxNameLength)
		}
	}
}

// Refused makes a finding of a refusal that a mistake in a configuration causes.
func (w watcher) Refused(peer elector.NodeID, reason netmesh.Reason, why string) {
	kind, ok := map[netmesh.Reason]findings.Kind{
		netmesh.ReasonForeignCluster: findings.WrongCluster,
		netmesh.ReasonDuplicateName:  findings.NameTwice,
		netmesh.ReasonCopied:         findings.DirectoryCopied,
		netmesh.ReasonOutdated:       findings.DirectoryOutdated,
		netmesh.ReasonVersion:        findings.Version,
		netmesh.ReasonSelf:           findings.WrongNode,
		netmesh.ReasonWrongNode:      findings.WrongNode,
		netmesh.ReasonProxied:        findings.ProxyBetween,
		netmesh.ReasonTLS:            findings.TLS,
	}[reason]
	if ok {
		w.d.report(kind, peer, why)
	}
}

// votersDiffer says how the voters of two nodes differ. It returns "" if they do not, or if
// one end does not send its own. Voters that one end declared lost may differ: after an
// emergency, new nodes, observers, and nodes on which a voter is not readmitted yet have other
// lists. The advice for that comes with the emergency.
func votersDiffer(me, peer elector.NodeID, mine, theirs *netmesh.Facts) string {
	if mine.VoterCount == 0 || theirs.VoterCount == 0 || bytes.Equal(mine.VoterSum, theirs.VoterSum) {
		return ""
	}
	lost := append(strings.Fields(settingsOf(mine)[lostVoters]),
		strings.Fields(settingsOf(theirs)[lostVoters])...)
	isLost := func(name string) bool { return slices.Contains(lost, name) }
	var parts []string
	if only := slices.DeleteFunc(without(mine.Voters, theirs), isLost); len(only) > 0 {
		parts = append(parts, fmt.Sprintf("only node %q counts %s", me, quoted(only)))
	}
	if only := slices.DeleteFunc(without(theirs.Voters, mine), isLost); len(only) > 0 {
		parts = append(parts, fmt.Sprintf("only node %q counts %s", peer, quoted(only)))
	}
	if len(parts) == 0 {
		if len(lost) > 0 && !isCut(mine) && !isCut(theirs) {
			return ""
		}
		parts = []string{"in a name beyond the first ones, which are told"}
	}
	return fmt.Sprintf("the voters of nodes %q (%d) and %q (%d) differ: %s",
		me, mine.VoterCount, peer, theirs.VoterCount, strings.Join(parts, "; "))
}

// without returns the names that the other end certainly does not have. If its list was cut,
// names after the last one in it are unknown.
func without(names []string, other *netmesh.Facts) (only []string) {
	cut := isCut(other)
	for _, name := range names {
		_, has := slices.BinarySearch(other.Voters, name)
		beyond := cut && (len(other.Voters) == 0 || name > other.Voters[len(other.Voters)-1])
		if !has && !beyond {
			only = append(only, name)
		}
	}
	return only
}

// isCut reports whether some voters did not fit into the list.
func isCut(f *netmesh.Facts) bool { return uint(len(f.Voters)) < f.VoterCount }

// quoted lists names, at most as many as fit into a log line.
func quoted(names []string) string {
	const most = 12
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, fmt.Sprintf("%q", name))
	}
	if rest := len(names) - most; rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, ", ")
}

// settingsDiffer compares the settings that both ends send: a newer build may send more. If
// the voters differ, a different quorum is no further finding.
func settingsDiffer(me, peer elector.NodeID, mine, theirs *netmesh.Facts) string {
	other := settingsOf(theirs)
	delete(other, lostVoters)
	if mine.VoterCount != theirs.VoterCount {
		delete(other, "quorum-rule")
	}
	var parts []string
	for pair := range slices.Chunk(mine.Settings, 2) {
		if value, ok := other[pair[0]]; ok && value != pair[1] {
			parts = append(parts, fmt.Sprintf("%s is %q on node %q and %q on node %q",
				pair[0], pair[1], me, value, peer))
		}
	}
	return strings.Join(parts, "; ")
}

func settingsOf(f *netmesh.Facts) map[string]string {
	all := map[string]string{}
	for pair := range slices.Chunk(f.Settings, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}
