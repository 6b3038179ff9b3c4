// Package findings names what can be wrong between a member of a cluster and the others, as
// Status and Stats of a node report it.
package findings

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Kind says what is wrong. It is the name that logs, metrics and JSON
// use. A newer release may know more kinds.
type Kind string

// The kinds. What a link shows is found as long as that link is up; what a refused
// connection shows, until a minute has passed without one.
const (
	VotersDiffer    Kind = "voters-differ"   // the two were given different voters
	SettingsDiffer  Kind = "settings-differ" // a setting that must be equal is not
	ClockRate       Kind = "clock-rate"      // the rates of the two clocks differ too much
	ProxyBetween    Kind = "proxy-between"   // a proxy or NAT rewrites the addresses of a connection
	WrongCluster    Kind = "wrong-cluster"   // refused: member of another cluster
	NameTwice       Kind = "name-twice"      // refused: one name, two data directories
	DirectoryCopied Kind = "data-dir-copied" // refused: another process runs, or ran, on a copy of it
	// refused: its data directory was replaced by another one, and put back
	DirectoryOutdated Kind = "data-dir-outdated"
	Version           Kind = "version"       // refused: no version of the protocol in common
	WrongNode         Kind = "wrong-node"    // refused: the address leads to another node
	TLS               Kind = "tls"           // refused: no accepted certificate, or one end has no TLS
	Certificate       Kind = "certificate"   // this node's ends soon, or a new one is wrong; no Peer
	FalseClaim        Kind = "false-claim"   // it claims to lead, and cannot have been elected
	OtherLineage      Kind = "other-lineage" // its record began apart from this node's
	DiskFails         Kind = "disk-fails"    // this node cannot write to its disk; no Peer
	Alone             Kind = "alone"         // no other member was found since the start; no Peer
	// a voter runs on a data directory that the record does not name; no Peer: this node itself
	VoterUncounted Kind = "voter-uncounted"
)

// kinds are all kinds, with why a finding of each matters and what to do about it.
var kinds = []struct {
	kind        Kind
	why, advice string
}{
	{VotersDiffer, "quorums of different lists need not share a voter: two leaders are possible",
		"stop the node whose list is wrong, and correct it; to add or remove a voter: 'bmqnode " +
			"voters', and the lists follow. Where that shows a record, they count only in elections " +
			"that are opened for the first time"},
	{SettingsDiffer, "with two values of it, two leaders are possible",
		"if one node is wrong, correct it and restart it alone; to change the value on purpose, " +
			"stop all, change all, start all (lease, heartbeat timers, unsafe), otherwise restart " +
			"one by one"},
	{ClockRate, "leases keep leaders apart only while clocks run at nearly one rate",
		"compare with a third node: fix the clock of the one that differs from the others " +
			"(clock source, virtual machine, time daemon), or allow more drift on every node"},
	{ProxyBetween, "a proxy that refuses a connection looks like the death of the process behind it",
		"set NoDeathProof on every node, or let members reach each other directly: a refused or " +
			"ended connection through a proxy or NAT does not prove that a process is gone"},
	{WrongCluster, "clusters never mix: the two do not see each other",
		"correct the cluster name of one of them, or the address or seed that led here"},
	{NameTwice, "votes are counted by name; the others refuse the younger of the two processes",
		"stop or rename one of the two nodes, of which one may be a stranger's without TLS; if " +
			"the data directory was replaced, end every process on the old one first, then let the " +
			"members forget it: bmqnode forget"},
	{DirectoryCopied, "a process on a copy does not know the votes of the other, and could vote twice",
		"find out by the addresses which of the two processes is the node's own: without TLS " +
			"the other one may be a stranger's, and is to be kept out; otherwise stop the process " +
			"on the copied or restored directory, keep that directory, and start the node with an " +
			"empty one; if no other process of that name is left, let the members forget it: " +
			"bmqnode forget"},
	{DirectoryOutdated,
		"it does not know the votes of the directory that was used after it, and could vote twice",
		"see by the address that no stranger says so, if there is no TLS; then stop the node " +
			"and start it on the newer data directory; only if that is lost, on an empty one: " +
			"docs/operations.md#replacing-a-node; keep the old one until it runs"},
	{Version, "the two cannot talk, so neither counts for the other's quorum",
		"upgrade the older of the two in steps of releases that have a version in common"},
	{WrongNode, "the member that is meant is not reached",
		"correct the name of the node at that address, if it is mistyped, the address that the " +
			"node advertises, or the port mapping that leads it here"},
	{TLS, "without a link neither counts for the other's quorum",
		"give every node a certificate of its name and cluster that all accept, or none: " +
			"bmqnode certs makes them"},
	{Certificate, "with a certificate that has ended a node makes no new links",
		"renew it: the node takes the new one from its files by itself"},
	{FalseClaim, "it ends elections, and a correct voter does not: it lies, a disk or a list of " +
		"voters is wrong, or a clock is",
		"look at that node: its program, its data directory and voters, and the clocks of both; " +
			"stop it if elections fail because of it. Take it off the list of names only if you are " +
			"certain that it lies"},
	{OtherLineage, "their records began apart: each keeps its own, and ignores the other",
		"two clusters of one name met: correct the cluster name or an address to join; or nodes were " +
			"wiped and began anew: keep the directories of the nodes whose record is right, and start " +
			"the others on empty ones, which then take it over"},
	{DiskFails, "what happens is not recorded, and a node that cannot write its terms takes no part",
		"make room on the file system of the data directory, or replace the disk; the node " +
			"takes part for as long as it can write its terms"},
	{Alone, "a node that finds nobody counts for nobody's quorum",
		"correct the addresses to join: at least one must be that of another member that runs"},
	{VoterUncounted, "its votes and acknowledgements count for nothing: its disk does not know what " +
		"the one that the record names has promised",
		"if that disk is gone for good: 'bmqnode voters replace NODE'; otherwise stop it, and start " +
			"it on that disk"},
}

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i, k := range kinds {
		all[i] = k.kind
	}
	return all
}

// Advice says what to do about a finding of this kind; "" for an unknown kind.
func (k Kind) Advice() string {
	_, advice := k.texts()
	return advice
}

// Why says why a finding of this kind matters; "" for an unknown kind.
func (k Kind) Why() string {
	why, _ := k.texts()
	return why
}

func (k Kind) texts() (why, advice string) {
	for _, known := range kinds {
		if known.kind == k {
			return known.why, known.advice
		}
	}
	return "", ""
}

// Finding is one thing that is wrong between this member and another one, and
// that a person must fix.
type Finding struct {
	Kind   Kind           `json:"kind"`
	Peer   elector.NodeID `json:"peer"`   // the name that the other end goes by; "" if there is none
	Detail string         `json:"detail"` // what differs, with both ends' values; printable, one line
	Advice string         `json:"advice"` // what to do about it
	Since  time.Time      `json:"since"`  // when it was found first, without interruption
}

// Clock is how the clock of a member that is linked compares with that of this node.
type Clock struct {
	// Rate is how much faster the member's clock runs, in parts per million, and Doubt by
	// how much that may be wrong. Both are 0 until some 24 pings were answered.
	Rate, Doubt float64
}
