package netmesh

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// FindingKind says what is wrong between two members.
type FindingKind uint8

// The kinds. What a link shows is found as long as that link is up; what ended a
// handshake until a minute has passed without it.
const (
	FindingVotersDiffer         FindingKind = iota + 1 // the two were given different voters
	FindingSettingsDiffer                              // a setting that must be equal is not: Config.Agree
	FindingClockRate                                   // the clocks' rates differ by more than Config.MaxDriftPPM
	FindingProxyBetween                                // a proxy or NAT rewrites the connection's addresses
	FindingAdvertiseUnreachable                        // the link stands, but one end cannot be dialed
	FindingWrongCluster                                // refused: member of another cluster
	FindingNameTwice                                   // refused: one name, two data directories
	FindingVersion                                     // refused: no version of the protocol in common
	FindingWrongNode                                   // refused: the address leads to another node
	FindingDirectoryCopied                             // refused: another process runs, or ran, on a copy of the data directory
	findingEnd
)

var findingNames = [findingEnd]string{
	"none", "voters-differ", "settings-differ", "clock-rate", "proxy-between", "advertise-unreachable",
	"wrong-cluster", "name-twice", "version", "wrong-node", "data-dir-copied",
}

// String returns the kind's name, as used in logs, metrics and JSON.
func (k FindingKind) String() string {
	if k > 0 && k < findingEnd {
		return findingNames[k]
	}
	return fmt.Sprintf("finding(%d)", uint8(k))
}

// MarshalText returns the name; an error if k is none of the kinds.
func (k FindingKind) MarshalText() ([]byte, error) {
	if k == 0 || k >= findingEnd {
		return nil, fmt.Errorf("netmesh: %s has no name", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (k *FindingKind) UnmarshalText(text []byte) error {
	i := slices.Index(findingNames[1:], string(text))
	if i < 0 {
		return fmt.Errorf("netmesh: no kind of finding is called %q; want one of %q", text, findingNames[1:])
	}
	*k = FindingKind(i + 1)
	return nil
}

// Finding is one thing that is wrong between this member and another one, and
// that a person must mend.
type Finding struct {
	Kind   FindingKind    `json:"kind"`
	Peer   elector.NodeID `json:"peer"`   // the name that the other end goes by
	Detail string         `json:"detail"` // what differs, with both ends' values; printable, one line
	Advice string         `json:"advice"` // what to do about it
	Since  time.Time      `json:"since"`  // when it was found first, without interruption
}

// findingOf is what a refused handshake finds; 0 if it is no mistake of anybody.
func findingOf(r Reason) FindingKind {
	switch r {
	case ReasonForeignCluster:
		return FindingWrongCluster
	case ReasonDuplicateName:
		return FindingNameTwice
	case ReasonCopied:
		return FindingDirectoryCopied
	case ReasonVersion:
		return FindingVersion
	case ReasonSelf, ReasonWrongNode:
		return FindingWrongNode
	case ReasonProxied:
		return FindingProxyBetween
	}
	return 0
}

// Advice says what to do about a finding of this kind, as every Finding of it does; ""
// if k is none of the kinds.
func (k FindingKind) Advice() string {
	if k >= findingEnd {
		return ""
	}
	return advice[k]
}

// advice says what to do about each kind.
var advice = [findingEnd]string{
	FindingVotersDiffer:   "give every node the same voters, one name changed at a time: start a new voter first, then restart the others one by one",
	FindingSettingsDiffer: "give every node the same value: stop all, change all, start all",
	FindingClockRate: "compare with a third node: mend the clock of the one that differs from the others " +
		"(clock source, virtual machine, time daemon), or allow more drift on every node",
	FindingProxyBetween: "set NoDeathProof on every node, or let members reach each other directly: " +
		"a refused or ended connection through a proxy or NAT does not prove that a process is gone",
	FindingAdvertiseUnreachable: "set the address that the node advertises to one at which the others reach it, " +
		"or open the way to it (firewall, port mapping, name resolution)",
	FindingWrongCluster: "correct the cluster name of one of them, or the address or seed that led here",
	FindingNameTwice: "stop or rename one of the two nodes; if the data directory was replaced, " +
		"end every process on the old one first, then let the members forget it: bmqnode forget",
	FindingDirectoryCopied: "stop the process on the copied or restored directory, and start it with an empty one; " +
		"if no other process of that name is left, let the members forget it: bmqnode forget",
	FindingVersion:   "upgrade the older of the two in steps of releases that have a version in common",
	FindingWrongNode: "correct the address that the node advertises, or the port mapping that leads it here",
}
