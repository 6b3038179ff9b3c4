package netmesh

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// factsVersion is the first version of the protocol that has Facts.
const factsVersion = 2

// facts is what a process tells about itself and about the link as it sees it,
// once a link is up and whenever any of it changes. The newest replaces all
// earlier ones. A newer version may append fields.
type facts struct {
	Voters      []string // sorted; the first of them if not all fit
	VoterCount  uint
	VoterSum    []byte   // fingerprint of all voters
	Settings    []string // of Config.Agree: key, value, key, value; sorted by key
	Local       string   // the sender's end of the connection
	Remote      string   // the receiver's end, as the sender sees it
	Unreachable string   // why the sender cannot dial the receiver; "" if it can, or does not know
	Dialed      string   // where it tried
}

// Bounds of facts: all together fit the smallest frame that a peer can be set to take.
const (
	maxVoterText    = 1 << 10 // bytes of voters' names that travel, as encoded
	maxSettings     = 16      // entries of Config.Agree
	maxSettingKey   = 48      // bytes
	maxSettingValue = 64      // bytes
	maxFactText     = 200     // bytes of an address or a cause that travels
)

// ownFacts are those that are the same on every link.
func ownFacts(c Config) facts {
	voters := make([]string, len(c.Voters))
	for i, v := range c.Voters {
		voters[i] = string(v)
	}
	slices.Sort(voters)
	f := facts{VoterCount: uint(len(voters)), VoterSum: fingerprint(voters)}
	room := maxVoterText
	for _, v := range voters {
		if room -= len(v) + 3; room < 0 {
			break
		}
		f.Voters = append(f.Voters, v)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Agree)) {
		f.Settings = append(f.Settings, key, c.Agree[key])
	}
	return f
}

// fingerprint is equal for equal sorted lists alone; nil for none.
func fingerprint(sorted []string) []byte {
	if len(sorted) == 0 {
		return nil
	}
	h := sha256.New()
	for _, s := range sorted {
		h.Write(binary.BigEndian.AppendUint16(nil, uint16(len(s))))
		h.Write([]byte(s))
	}
	return h.Sum(nil)[:16]
}

// facts returns what to tell the peer now.
func (l *link) facts() *facts {
	f := l.m.facts
	f.Local, f.Remote = clip(l.conn.LocalAddr().String()), clip(l.info.Remote)
	l.m.mu.RLock()
	defer l.m.mu.RUnlock()
	if l.p.link == l && l.p.reach.failing() {
		f.Unreachable, f.Dialed = clip(l.p.reach.cause), clip(l.p.reach.addr)
	}
	return &f
}

// learn compares what the peer tells with what is so here.
func (l *link) learn(theirs *facts) error {
	if err := theirs.check(); err != nil {
		return refuse(ReasonGarbage, "facts: %v", err)
	}
	l.p.takeTurn()
	defer l.p.leaveTurn()
	if !l.current() {
		return nil
	}
	mine, peer := l.facts(), l.p.node
	l.m.finds(peer, FindingVotersDiffer, l.m.votersDiffer(peer, mine, theirs))
	l.m.finds(peer, FindingSettingsDiffer, l.m.settingsDiffer(peer, mine, theirs))
	l.m.finds(peer, FindingProxyBetween, l.proxyBetween(mine, theirs))
	l.m.finds(peer, FindingAdvertiseUnreachable, l.unreachable(theirs))
	l.wantEvidence()
	return nil
}

// current reports whether l is the link to its peer.
func (l *link) current() bool {
	l.m.mu.RLock()
	defer l.m.mu.RUnlock()
	return l.p.link == l
}

// check reports what no correct peer tells.
func (f *facts) check() error {
	long := func(s string) bool { return len(s) > MaxNameLength }
	switch {
	case uint(len(f.Voters)) > f.VoterCount || slices.ContainsFunc(f.Voters, long) || !slices.IsSorted(f.Voters):
		return fmt.Errorf("%d voters of %d, unsorted or a name above %d bytes", len(f.Voters), f.VoterCount, MaxNameLength)
	case len(f.Settings)%2 != 0 || len(f.Settings) > 2*maxSettings || slices.ContainsFunc(f.Settings, long):
		return fmt.Errorf("%d words of settings; want at most %d pairs", len(f.Settings), maxSettings)
	case max(len(f.Local), len(f.Remote), len(f.Dialed), len(f.Unreachable)) > maxFactText:
		return fmt.Errorf("an address or cause above %d bytes", maxFactText)
	}
	return nil
}

func clip(s string) string { return s[:min(len(s), maxFactText)] }
