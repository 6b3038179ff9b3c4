package netmesh

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
)

// votersDiffer says how the voters of two nodes differ; "" if they do not, or if
// one end does not tell its own.
func (m *Mesh) votersDiffer(peer elector.NodeID, mine, theirs *facts) string {
	if mine.VoterCount == 0 || theirs.VoterCount == 0 || bytes.Equal(mine.VoterSum, theirs.VoterSum) {
		return ""
	}
	var parts []string
	if only := without(mine.Voters, theirs); len(only) > 0 {
		parts = append(parts, fmt.Sprintf("only node %q counts %s", m.cfg.Node, quoted(only)))
	}
	if only := without(theirs.Voters, mine); len(only) > 0 {
		parts = append(parts, fmt.Sprintf("only node %q counts %s", peer, quoted(only)))
	}
	if len(parts) == 0 {
		parts = []string{"in a name beyond the first ones, which are told"}
	}
	return fmt.Sprintf("the voters of nodes %q (%d) and %q (%d) differ: %s",
		m.cfg.Node, mine.VoterCount, peer, theirs.VoterCount, strings.Join(parts, "; "))
}

// without returns the names that the other end surely does not have: of a list
// that was cut nothing is known beyond its last name.
func without(names []string, other *facts) (only []string) {
	cut := uint(len(other.Voters)) < other.VoterCount
	for _, name := range names {
		_, has := slices.BinarySearch(other.Voters, name)
		beyond := cut && (len(other.Voters) == 0 || name > other.Voters[len(other.Voters)-1])
		if !has && !beyond {
			only = append(only, name)
		}
	}
	return only
}

// settingsDiffer compares the settings that both ends tell: a newer build may
// tell more of them.
func (m *Mesh) settingsDiffer(peer elector.NodeID, mine, theirs *facts) string {
	other := theirs.settings()
	var parts []string
	for pair := range slices.Chunk(mine.Settings, 2) {
		if value, ok := other[pair[0]]; ok && value != pair[1] {
			parts = append(parts, fmt.Sprintf("%s is %q on node %q and %q on node %q", pair[0], pair[1], m.cfg.Node, value, peer))
		}
	}
	return strings.Join(parts, "; ")
}

func (f *facts) settings() map[string]string {
	all := make(map[string]string, len(f.Settings)/2)
	for pair := range slices.Chunk(f.Settings, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}

// quoted lists names, not more than a log line takes.
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
