package ask

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

// Kind names a problem, and its heading in docs/errors.md. It may be a finding of a node.
type Kind = findings.Kind

type advice struct{ why, fix string }

// catalogue has the advice for every kind.
var catalogue = map[Kind]advice{}

func init() {
	for _, k := range findings.Kinds() {
		catalogue[k] = advice{k.Why(), k.Advice()}
	}
}

func kind(name Kind, why, fix string) Kind {
	catalogue[name] = advice{why, fix}
	return name
}

// The kinds that nodes do not find themselves.
var (
	noAnswer = kind("no-answer", "a voter that does not run is missing from every quorum",
		"start it; if it runs, name its admin address with --admin, and its token")
	neverSeen = kind("never-seen", "a voter that never came is missing from every quorum",
		"start it, or correct its name, its join addresses or the voters")
	linkDown = kind("link-down", "votes and heartbeats between the two are lost",
		"check the network in both directions: mesh port, routes, firewalls")
	datagramsBlocked = kind("datagrams-do-not-pass",
		"beats of elections go over TCP: a lost packet delays those behind it",
		"let UDP pass to the mesh port of both nodes, as TCP does: firewalls, NAT; or remove what else "+
			"it names")
	noLeader = kind("no-leader", "nobody leads, or this node does not know who",
		"do what the explanation names; an election takes a few seconds, so ask again first")
	leaderDisputed = kind("leader-disputed",
		"normal during a change of leaders; if it stays, links work one way only",
		"ask again; then look at the links")
	pausedInPart = kind("paused-in-part",
		"a voter that was not told of the pause stands as soon as the leader is lost",
		"tell all of them: 'bmqnode pause', or 'bmqnode resume'")
	nodeFailed = kind("node-failed",
		"the node could not keep what it promised, so it does not vote any more",
		"do what it says, and start it again; only if its disk is broken, replace the node: "+
			"docs/operations.md#replacing-a-node")
	versionsDiffer = kind("versions-differ", "fine during a rolling upgrade, and not for longer",
		"finish the upgrade: docs/operations.md#rolling-upgrade")
	wallClock = kind("wall-clock",
		"elections do not read wall clocks, but logs of several nodes are hard to compare",
		"run a time daemon on every machine")
	leaseShort = kind("lease-short",
		"a lease that is renewed at the last moment is lost at the next delay",
		"set a lease of at least ten of the longest round trips, the same on every node")
	diskSlow = kind("disk-slow", "a vote counts when it is on disk: slow fsyncs make elections slow",
		"use a faster disk, or raise election-result and scouting-result on every node")
	qosNotMet = kind("qos-not-met",
		"a leader that lives may be suspected more often than was asked, or found dead later",
		"ask for what can be had, the same on every node: a longer detect, as a rule")
	recordBehind = kind("record-behind",
		"a voter that lacks the newest record cannot be elected, and does not keep it",
		"ask again: it takes a round trip; then look at its links and its disk")
	votersConfigured = kind("voters-configured",
		"two leaders are possible where an election is opened for the first time by different lists",
		"correct 'voters' in the configuration of every node; no node needs a restart for it")
	noVoter = kind("no-voter", "it follows and does not vote; a misspelt name looks the same",
		"nothing if it is meant; otherwise correct its name or the voters")
	evenVoters = kind("even-voters",
		"an even number survives no more losses than the odd one below it", "add a voter or remove one")
	noSuccessor = kind("no-successor", "if the leader is lost, nobody leads",
		"'bmqnode set NODE --not-candidate=false', or correct not-candidate in its file; repair what "+
			"makes the others unfit")
	notFit = kind("not-fit", "it does not stand; if it leads, no other node is fit either, or a handover "+
		"is under way", "repair what it names; docs/operations.md#health-probes")
	emergencyRecord = kind("emergency-record",
		"the others elect without the lost voters, and must never meet them",
		"bring the cluster back to full strength: docs/emergency.md#back-to-full-strength")
	plainAccepted = kind("plain-accepted", "whoever reaches the node can join, as without TLS: "+
		"fine during a move to TLS, and not for longer",
		"once 'bmqnode status' names no link without TLS, remove accept-plain: docs/operations.md#tls")
	termsUsedUp = kind("terms-used-up", "when no terms are left, nobody can be elected any more",
		"do what docs/errors.md#terms-used-up says")
	anomaly = kind("anomaly", "a correct member does not send this",
		"look for the 'anomaly' lines in its log; compare versions and voters")
	strangers = kind("strangers", "something that is no member talks to the mesh port",
		"find it by the 'connection refused' lines in its log, and close the port to it")
)

// The kinds of a start that failed. They have no why: the node does not run.
var (
	_         = kind("config-invalid", "", "correct it; 'bmqnode run --help' has every option")
	portTaken = kind("port-taken", "",
		"stop the process that has the port, or choose another port")
	addressForeign = kind("address-foreign", "",
		"listen on an address of this machine or on 0.0.0.0, and advertise the other one")
	dataDirOwner = kind("data-dir-owner", "",
		"use the right one; a renamed node begins with an empty one")
	dataDirInUse   = kind("data-dir-in-use", "", "stop the other process, or choose another directory")
	dataDirDamaged = kind("data-dir-damaged", "", "never restore a copy")
	dataDirNewer   = kind("data-dir-newer", "",
		"start it with the release that wrote it, or a newer one; keep it")
	dataDirUnusable = kind("data-dir-unusable", "",
		"use a directory that the service's user can write to, with 2 MiB of room")
)

// errorsPage has an entry for each kind.
const errorsPage = "docs/errors.md"

func see(k Kind) string { return errorsPage + "#" + string(k) }

// Explain adds a fix and the entry of docs/errors.md to the error of a node that cannot start. It
// returns an unknown error as it is.
func Explain(err error) error {
	if errors.Is(err, cluster.ErrCredentials) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; tls-dir must name the directory that 'bmqnode certs' made for this "+
			"node; see docs/operations.md#tls", err)
	}
	for _, known := range []struct {
		err  error
		kind Kind
	}{
		{syscall.EADDRINUSE, portTaken}, {syscall.EADDRNOTAVAIL, addressForeign},
		{cluster.ErrDirInUse, dataDirInUse}, {cluster.ErrDirDamaged, dataDirDamaged},
		{cluster.ErrDirNewer, dataDirNewer}, {cluster.ErrDirOwner, dataDirOwner},
		{cluster.ErrNotDurable, dataDirUnusable}, {cluster.ErrCredentials, findings.Certificate},
	} {
		if errors.Is(err, known.err) {
			return fmt.Errorf("%w; %s; see %s", err, catalogue[known.kind].fix, see(known.kind))
		}
	}
	return err
}
