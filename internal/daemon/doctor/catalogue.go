package doctor

import (
	"maps"
	"slices"

	"github.com/bmqelect/bmqelect/cluster/findings"
)

// Kind names something that can be wrong; it is its heading in docs/errors.md.
// The kinds of findings.Finding are kinds here, too.
type Kind string

// The kinds that are no findings of nodes.
const (
	NoAnswer        Kind = "no-answer"
	NeverSeen       Kind = "never-seen"
	LinkDown        Kind = "link-down"
	NoLeader        Kind = "no-leader"
	LeaderDisputed  Kind = "leader-disputed"
	NodeFailed      Kind = "node-failed"
	VersionsDiffer  Kind = "versions-differ"
	WallClock       Kind = "wall-clock"
	LeaseShort      Kind = "lease-short"
	DiskSlow        Kind = "disk-slow"
	DiskFull        Kind = "disk-full"
	NoVoter         Kind = "no-voter"
	EvenVoters      Kind = "even-voters"
	EmergencyRecord Kind = "emergency-record"
	TermsUsedUp     Kind = "terms-used-up"
	Anomaly         Kind = "anomaly"
	Strangers       Kind = "strangers"
	DeathProof      Kind = "death-proof"
	ConfigInvalid   Kind = "config-invalid"
	VoterMissing    Kind = "voter-missing"
	PortClash       Kind = "port-clash"
	PortTaken       Kind = "port-taken"
	AddressForeign  Kind = "address-foreign"
	JoinUnresolved  Kind = "join-unresolved"
	JoinUnreachable Kind = "join-unreachable"
	JoinNobody      Kind = "join-nobody"
	DataDirOwner    Kind = "data-dir-owner"
	DataDirInUse    Kind = "data-dir-in-use"
	DataDirDamaged  Kind = "data-dir-damaged"
	DataDirUnusable Kind = "data-dir-unusable"
	DataDirOpen     Kind = "data-dir-open"
	ClockStops      Kind = "clock-stops"
	FewFiles        Kind = "few-files"
)

// errorsPage is where each kind has an entry.
const errorsPage = "docs/errors.md"

// See is where docs/errors.md tells more of a kind.
func See(k Kind) string { return errorsPage + "#" + string(k) }

// Kinds are all kinds, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(catalogue)) }

type words struct{ why, mend string }

var catalogue = merged(amongNodes, ofRunning, ofPlanned)

func merged(parts ...map[Kind]words) map[Kind]words {
	all := map[Kind]words{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// amongNodes are what nodes find between each other, and this package by comparison.
// What to do is said in one place, by the kind itself.
var amongNodes = func() map[Kind]words {
	all := map[Kind]words{}
	for kind, why := range map[findings.Kind]string{
		findings.VotersDiffer:    "quorums of different lists need not share a voter: two leaders become possible",
		findings.SettingsDiffer:  "a leader trusts its lease for as long as its own timers say, the others promise it by theirs",
		findings.ClockRate:       "leases keep leaders apart only while clocks run at nearly one rate",
		findings.ProxyBetween:    "a proxy that refuses a connection looks like the death of the process behind it",
		findings.WrongCluster:    "clusters never mix: the two do not see each other",
		findings.NameTwice:       "votes are counted by name; the others refuse the younger of the two processes",
		findings.DirectoryCopied: "a process on a copy does not know what the other one voted, and could vote twice",
		findings.Version:         "the two cannot talk, so neither counts for the other's quorum",
		findings.WrongNode:       "the member that is meant is not reached",
	} {
		all[Kind(kind)] = words{why, kind.Advice()}
	}
	return all
}()

var ofRunning = map[Kind]words{
	NoAnswer:        {"a voter that does not run is missing from every quorum; one that only keeps silent here cannot be examined", "start it; if it runs, name its admin address with --admin, and its token"},
	NeverSeen:       {"a voter that never came is missing from every quorum", "start it, or correct its name, its join addresses or the voters"},
	LinkDown:        {"votes and heartbeats between the two go nowhere; a voter without links can neither elect nor follow", "look at the network between them: both directions of the mesh port, routes, firewalls; and at cuts made by 'bmqnode fault'"},
	NoLeader:        {"nobody leads, or this node does not know who", "do what the explanation names; an election takes a few seconds, so ask again first"},
	LeaderDisputed:  {"for a moment this is what a change of leaders looks like; if it stays, links are cut one way", "ask again; then look at the links"},
	NodeFailed:      {"the node could not keep what it promised, so it votes no more", "mend or replace its disk: docs/operations.md#replacing-a-node"},
	VersionsDiffer:  {"fine during a rolling upgrade, and not for longer", "finish the upgrade: docs/operations.md#rolling-upgrade"},
	WallClock:       {"elections do not read wall clocks, but whoever compares the nodes' logs does", "let a time daemon run on every machine"},
	LeaseShort:      {"a lease that is renewed at the last moment is lost at the next delay", "choose a lease of at least ten of the longest round trips, scouting-result and election-result of four; the same on every node"},
	DiskSlow:        {"a vote counts when it is on disk: slow fsyncs make elections slow", "give the data directory a faster disk, or raise election-result and scouting-result on every node"},
	NoVoter:         {"it follows and does not vote; a misspelt name looks the same", "nothing if it is meant; else correct its name or the voters"},
	EvenVoters:      {"an even number survives no more losses than the odd one below it", "add a voter or take one away"},
	EmergencyRecord: {"the others elect without those that were declared lost, and must never meet them", "bring the cluster back to full strength: docs/emergency.md"},
	TermsUsedUp:     {"when no terms are left nobody can be elected any more", "do what docs/errors.md#terms-used-up says"},
	Anomaly:         {"a correct member does not send this", "look for the 'anomaly' lines in its log; compare versions and voters"},
	Strangers:       {"something that is no member talks to the mesh port", "find out who, by the 'connection refused' lines in its log, and close the port to it"},
}

var ofPlanned = map[Kind]words{
	"advertise-unreachable": {
		"when a link is lost, only one of the two ends can make the next one",
		"advertise an address at which the others reach the node, or open the way to it",
	},
	DiskFull:        {"a node whose disk keeps nothing stops to vote", "make room, or put the data directory elsewhere"},
	DeathProof:      {"where addresses are translated, a refused connection may be the translator's word, and proves no death", "set no-death-proof on every node, unless the translation is always up"},
	ConfigInvalid:   {"the node does not start", "correct it; 'bmqnode run --help' has every option"},
	VoterMissing:    {"a voter that nobody runs is missing from every quorum", "write its file, or name it here; if it runs elsewhere, name its admin address with --admin"},
	PortClash:       {"only the first of the two starts", "give each its own port"},
	PortTaken:       {"the node does not start", "stop that process, or choose another port"},
	AddressForeign:  {"the node does not start: it cannot listen there", "listen on an address of this machine, or on 0.0.0.0, and advertise the other one"},
	JoinUnresolved:  {"the node does not find its cluster by this name", "correct the name, or the resolver"},
	JoinUnreachable: {"the node does not find its cluster at this address", "correct the address, or open the gossip port, TCP and UDP, in firewalls"},
	JoinNobody:      {"nodes that name nobody and are named by nobody stay alone", "name the gossip address of at least one other member under join, better two"},
	DataDirOwner:    {"another node's votes are in it: starting there would forge them", "give every node a directory of its own"},
	DataDirInUse:    {"two processes on one directory would vote twice", "stop the other process, or choose another directory"},
	DataDirDamaged:  {"what the node voted is not known any more", "move the directory away and start with an empty one, as docs/operations.md#replacing-a-node says; never restore a copy"},
	DataDirUnusable: {"a node that cannot write down its votes does not start", "make it a directory that the service's user can write to"},
	DataDirOpen:     {"whoever writes there can forge votes", "chmod 0700, owned by the service's user"},
	ClockStops:      {"if the machine sleeps, leases stand still with its clock", "do not suspend machines that run nodes"},
	FewFiles:        {"connections to members and clients need a file descriptor each", "raise the limit (LimitNOFILE in systemd, ulimit -n)"},
}
