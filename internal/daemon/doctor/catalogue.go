package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

// Kind names something that can be wrong; it is its heading in docs/errors.md. Findings
// of nodes are among them.
type Kind = findings.Kind

// The kinds that are no findings of nodes.
const (
	NoAnswer        Kind = "no-answer"
	NeverSeen       Kind = "never-seen"
	LinkDown        Kind = "link-down"
	NoLeader        Kind = "no-leader"
	LeaderDisputed  Kind = "leader-disputed"
	PausedInPart    Kind = "paused-in-part"
	NodeFailed      Kind = "node-failed"
	VersionsDiffer  Kind = "versions-differ"
	WallClock       Kind = "wall-clock"
	LeaseShort      Kind = "lease-short"
	DiskSlow        Kind = "disk-slow"
	QoSNotMet       Kind = "qos-not-met"
	NoVoter         Kind = "no-voter"
	EvenVoters      Kind = "even-voters"
	NoSuccessor     Kind = "no-successor"
	EmergencyRecord Kind = "emergency-record"
	TermsUsedUp     Kind = "terms-used-up"
	PlainAccepted   Kind = "plain-accepted"
	Anomaly         Kind = "anomaly"
	Strangers       Kind = "strangers"
	ConfigInvalid   Kind = "config-invalid"
	PortTaken       Kind = "port-taken"
	AddressForeign  Kind = "address-foreign"
	DataDirOwner    Kind = "data-dir-owner"
	DataDirInUse    Kind = "data-dir-in-use"
	DataDirDamaged  Kind = "data-dir-damaged"
	DataDirNewer    Kind = "data-dir-newer"
	DataDirUnusable Kind = "data-dir-unusable"
)

// errorsPage is where each kind has an entry.
const errorsPage = "docs/errors.md"

// see is where docs/errors.md tells more of a kind.
func see(k Kind) string { return errorsPage + "#" + string(k) }

// advice is what is said of a kind. Problems of a start need no reason: the node does
// not run.
type advice struct{ why, fix string }

var catalogue = map[Kind]advice{
	NoAnswer: {
		"a voter that does not run is missing from every quorum",
		"start it; if it runs, name its admin address with --admin, and its token",
	},
	NeverSeen: {
		"a voter that never came is missing from every quorum",
		"start it, or correct its name, its join addresses or the voters",
	},
	LinkDown: {
		"votes and heartbeats between the two are lost",
		"check the network in both directions: mesh port, routes, firewalls",
	},
	NoLeader: {
		"nobody leads, or this node does not know who",
		"do what the explanation names; an election takes a few seconds, so ask again first",
	},
	LeaderDisputed: {
		"normal during a change of leaders; if it stays, links work one way only",
		"ask again; then look at the links",
	},
	PausedInPart: {
		"a voter that was not told of the pause stands as soon as the leader is lost",
		"tell all of them: 'bmqnode pause', or 'bmqnode resume'",
	},
	NodeFailed: {
		"the node could not keep what it promised, so it does not vote any more",
		"do what it says, and start it again; only if its disk is broken, replace the node: " +
			"docs/operations.md#replacing-a-node",
	},
	VersionsDiffer: {
		"fine during a rolling upgrade, and not for longer",
		"finish the upgrade: docs/operations.md#rolling-upgrade",
	},
	WallClock: {
		"elections do not read wall clocks, but logs of several nodes are hard to compare",
		"run a time daemon on every machine",
	},
	LeaseShort: {
		"a lease that is renewed at the last moment is lost at the next delay",
		"set a lease of at least ten of the longest round trips, the same on every node",
	},
	DiskSlow: {
		"a vote counts when it is on disk: slow fsyncs make elections slow",
		"use a faster disk, or raise election-result and scouting-result on every node",
	},
	QoSNotMet: {
		"a leader that lives may be suspected more often than was asked, or found dead later",
		"ask for what can be had, the same on every node: a longer detect, as a rule",
	},
	NoVoter: {
		"it follows and does not vote; a misspelt name looks the same",
		"nothing if it is meant; otherwise correct its name or the voters",
	},
	EvenVoters: {
		"an even number survives no more losses than the odd one below it",
		"add a voter or remove one",
	},
	NoSuccessor: {
		"if the leader is lost, nobody leads",
		"'bmqnode set NODE --not-candidate=false', or correct not-candidate in its file",
	},
	EmergencyRecord: {
		"the others elect without the lost voters, and must never meet them",
		"bring the cluster back to full strength: docs/emergency.md#back-to-full-strength",
	},
	PlainAccepted: {
		"whoever reaches the node can join, as without TLS: fine during a move to TLS, and not for longer",
		"once 'bmqnode status' names no link without TLS, remove accept-plain: docs/operations.md#tls",
	},
	TermsUsedUp: {
		"when no terms are left, nobody can be elected any more",
		"do what docs/errors.md#terms-used-up says",
	},
	Anomaly: {
		"a correct member does not send this",
		"look for the 'anomaly' lines in its log; compare versions and voters",
	},
	Strangers: {
		"something that is no member talks to the mesh port",
		"find it by the 'connection refused' lines in its log, and close the port to it",
	},
	ConfigInvalid: {fix: "correct it; 'bmqnode run --help' has every option"},
	PortTaken:     {fix: "stop the process that has the port, or choose another port"},
	AddressForeign: {fix: "listen on an address of this machine or on 0.0.0.0, " +
		"and advertise the other one"},
	DataDirOwner:    {fix: "use the right one; a renamed node begins with an empty one"},
	DataDirInUse:    {fix: "stop the other process, or choose another directory"},
	DataDirDamaged:  {fix: "never restore a copy"},
	DataDirNewer:    {fix: "start it with the release that wrote it, or a newer one; keep it"},
	DataDirUnusable: {fix: "use a directory that the service's user can write to, with 2 MiB of room"},

	// What to do about a finding is said in one place, by the finding itself.
	findings.VotersDiffer: {
		why: "quorums of different lists need not share a voter: two leaders are possible",
	},
	findings.SettingsDiffer: {
		why: "with two values of it, two leaders are possible",
	},
	findings.ClockRate: {
		why: "leases keep leaders apart only while clocks run at nearly one rate",
	},
	findings.ProxyBetween: {
		why: "a proxy that refuses a connection looks like the death of the process behind it",
	},
	findings.WrongCluster: {
		why: "clusters never mix: the two do not see each other",
	},
	findings.NameTwice: {
		why: "votes are counted by name; the others refuse the younger of the two processes",
	},
	findings.DirectoryCopied: {
		why: "a process on a copy does not know the votes of the other, and could vote twice",
	},
	findings.DirectoryOutdated: {
		why: "it does not know the votes of the directory that was used after it, and could vote twice",
	},
	findings.Version: {
		why: "the two cannot talk, so neither counts for the other's quorum",
	},
	findings.WrongNode: {
		why: "the member that is meant is not reached",
	},
	findings.TLS: {
		why: "without a link neither counts for the other's quorum",
	},
	findings.Certificate: {
		why: "with a certificate that has ended a node makes no new links",
	},
	findings.FalseClaim: {
		why: "it ends elections, and a correct voter does not: it lies, a disk or a list of voters is " +
			"wrong, or a clock is",
	},
	findings.DiskFails: {
		why: "what happens is not recorded, and a node that cannot write its terms takes no part",
	},
	findings.Alone: {
		why: "a node that finds nobody counts for nobody's quorum",
	},
}

// Explain adds to the error of a node that cannot start what to do about it, and the
// entry of docs/errors.md. It returns an error that it does not know as it is.
func Explain(err error) error {
	if errors.Is(err, cluster.ErrCredentials) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; tls-dir must name the directory that 'bmqnode certs' made for this "+
			"node; see docs/operations.md#tls", err)
	}
	for _, known := range []struct {
		err  error
		kind Kind
	}{
		{syscall.EADDRINUSE, PortTaken},
		{syscall.EADDRNOTAVAIL, AddressForeign},
		{cluster.ErrDirInUse, DataDirInUse},
		{cluster.ErrDirDamaged, DataDirDamaged},
		{cluster.ErrDirNewer, DataDirNewer},
		{cluster.ErrDirOwner, DataDirOwner},
		{cluster.ErrNotDurable, DataDirUnusable},
		{cluster.ErrCredentials, findings.Certificate},
	} {
		if errors.Is(err, known.err) {
			fix := cmp.Or(catalogue[known.kind].fix, known.kind.Advice())
			return fmt.Errorf("%w; %s; see %s", err, fix, see(known.kind))
		}
	}
	return err
}
