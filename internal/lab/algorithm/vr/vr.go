// Package vr is the view change of Viewstamped Replication, as Liskov and Cowling have it in
// Viewstamped Replication Revisited (MIT-CSAIL-TR-2012-021, sections 4.1 to 4.3, read), with their
// recovery. It is the election that the study of Omni-Paxos (EuroSys 2023) calls VR; what its
// artifact has (haraldng/omnipaxos-artifacts 4cda041, vr_le.rs) was read beside the paper.
//
// The replicas take turns: in view v the v-th of the configuration is the primary, round after
// round. A status is normal, view-change or recovering. The rules, by the paper's numbers:
//
//   - Normal case. The primary, which has no requests here, sends COMMIT every period. A replica
//     drops messages of a lower view. COMMIT of a higher view makes its receiver follow that view.
//   - 4.2, 1. A replica goes to the next view if it hears nothing from its primary for the
//     time-out, or if its view change did not succeed in time. STARTVIEWCHANGE or DOVIEWCHANGE of a
//     higher view takes it to that view, even if it is a primary. It has status view-change then,
//     and sends STARTVIEWCHANGE to all.
//   - 4.2, 2. A replica with STARTVIEWCHANGE of its view from f others sends DOVIEWCHANGE to the
//     view's primary. A quorum, itself included, has left the views before.
//   - 4.2, 3 to 5. The primary with DOVIEWCHANGE from f + 1, itself included, is normal, and leads.
//     It sends STARTVIEW to all. They are normal then.
//   - 4.3. Only a count of its lives is on a replica's disk. A replica that restarts is recovering.
//     It takes no part, and sends RECOVERY to all with the number of its life, the nonce. It waits
//     for answers of f + 1 others that are normal. The primary of the latest of their views must be
//     among them; the replica follows that one.
//
// Deviations from the paper, and what it leaves open:
//   - Views are counted from 1, so that View.Term is the view.
//   - f is the number of members beyond a quorum. With an even number of members f others and
//     itself are too few, so rule 2 asks for a quorum.
//   - There is no log: no requests, no PREPARE, no state transfer. A replica that hears of a normal
//     view follows it at once, without the round trip.
//   - Lost messages of a view change are not sent again: the next view follows. RECOVERY is.
//
// The artifact differs from the paper, and is not followed, in this: a backup asks the leader for
// heartbeats, no view change times out, DOVIEWCHANGE before the quorum of STARTVIEWCHANGE is
// ignored, and a replica that sent DOVIEWCHANGE takes the new primary as elected.
//
// Timers: COMMIT comes every Timing.HeartbeatBroadcast. The backup's time-out is Timing.Inactivity;
// that of a view change and of RECOVERY is Timing.ElectionResult.
//
// Guaranteed: one primary in a view; a quorum left the views before it. Not guaranteed:
//   - One primary at a time. An old one leads on until it hears of a later view.
//   - A stable primary. A replica that does not hear it takes everybody along to the next view.
//   - A primary at all. A view needs a primary and enough others that each hear a quorum. So it
//     never starts where only one replica does: in the study's quorum loss and constrained
//     election. If more than f have restarted and none has recovered, nobody ever will.
package vr

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// VR is the view change with recovery.
var VR = algorithm.Algorithm{
	Name:             "vr",
	Title:            "Viewstamped Replication",
	Source:           "Liskov, Cowling: Viewstamped Replication Revisited, 2012",
	New:              member.Maker(begin),
	OneLeaderPerTerm: true,
	Deviates: "no log, so no state transfer: a normal view is followed at once; lost " +
		"messages of a view change are not sent again; views are counted from 1",
}

// The messages.
type (
	// Commit says that the sender is the primary of the view, and normal.
	Commit struct{ View lsn.Term }
	// StartViewChange says that the sender has left all lower views.
	StartViewChange struct{ View lsn.Term }
	// DoViewChange says to the view's primary that a quorum has left them.
	DoViewChange struct{ View lsn.Term }
	// StartView says that the sender is the primary of a new view.
	StartView struct{ View lsn.Term }
	// Recovery asks for the view. Nonce is the number of the sender's life.
	Recovery struct{ Nonce uint64 }
	// RecoveryResponse answers Recovery with its nonce, and the view in which the sender is normal.
	RecoveryResponse struct {
		View  lsn.Term
		Nonce uint64
	}
)

// Disk has how many lives a replica had, with this one.
type Disk struct{ Lives uint64 }

type status uint8

const (
	starting status = iota // its life is not counted yet
	normal
	viewChange
	recovering
)

// replica is a member; its view is Member.Term.
type replica struct {
	*member.Member
	life    uint64
	status  status
	timer   member.Timer // COMMIT of a primary, time-outs of all others
	started member.Set   // from whom there is STARTVIEWCHANGE of this view
	done    member.Set   // likewise DOVIEWCHANGE

	answers member.Set // to RECOVERY
	latest  lsn.Term   // view among these
	led     bool       // its primary is among them
}

func begin(m *member.Member) member.Rules {
	disk, _ := m.Disk.(Disk)
	m.Save(Disk{disk.Lives + 1})
	return &replica{Member: m, life: disk.Lives + 1}
}

// Input begins the life when it is counted.
func (r *replica) Input(in algorithm.Input) {
	if _, ok := in.(elector.Persisted); !ok || r.status != starting {
		return
	}
	if r.life == 1 {
		r.serve(1, "start")
		return
	}
	r.status, r.timer = recovering, r.After(0)
}

func (r *replica) primary(view lsn.Term) int { return int((view - 1) % lsn.Term(len(r.Cfg.Order))) }

func (r *replica) Receive(from int, msg algorithm.Message) {
	switch r.status {
	case starting:
		return
	case recovering:
		if answer, ok := msg.(RecoveryResponse); ok && answer.Nonce == r.life {
			r.answered(from, answer.View)
		}
		return
	}
	switch msg := msg.(type) {
	case Commit:
		r.follow(from, msg.View, "COMMIT")
	case StartView:
		r.follow(from, msg.View, "STARTVIEW")
	case StartViewChange:
		r.enter(msg.View, "STARTVIEWCHANGE")
		if msg.View == r.Term && r.status == viewChange {
			r.started.Put(from, true)
			r.progress()
		}
	case DoViewChange:
		r.enter(msg.View, "DOVIEWCHANGE")
		if msg.View == r.Term && r.status == viewChange {
			r.done.Put(from, true)
			r.progress()
		}
	case Recovery:
		if r.status == normal {
			r.Send(from, RecoveryResponse{r.Term, msg.Nonce})
		}
	}
}

// follow takes the sender as the primary, unless its view is past.
func (r *replica) follow(from int, view lsn.Term, why string) {
	switch {
	case view < r.Term || from != r.primary(view):
	case view == r.Term && r.status == normal:
		r.timer = r.After(r.Timing.Inactivity())
	default:
		r.serve(view, why)
	}
}

// serve is normal in a view.
func (r *replica) serve(view lsn.Term, why string) {
	r.status, r.Term = normal, view
	if primary := r.primary(view); primary != r.Self {
		r.timer = r.After(r.Timing.Inactivity())
		r.Become(elector.Follower, primary, why)
		return
	}
	r.timer = r.After(r.Timing.HeartbeatBroadcast)
	r.Become(elector.Leader, r.Self, why)
}

// enter is rule 1, for a view that is higher.
func (r *replica) enter(view lsn.Term, why string) {
	if view <= r.Term {
		return
	}
	r.status, r.Term = viewChange, view
	r.started, r.done = member.Of(r.Self), member.Set{}
	r.timer = r.After(r.Timing.ElectionResult)
	role := elector.Follower
	if r.primary(view) == r.Self {
		role = elector.Candidate
	}
	r.Become(role, member.Nobody, why)
	r.Broadcast(StartViewChange{view})
}

// progress is rules 2 and 3. A primary sends DOVIEWCHANGE to itself.
func (r *replica) progress() {
	if !r.Quorum(r.started) {
		return
	}
	primary := r.primary(r.Term)
	if !r.done.Has(r.Self) {
		r.done.Put(r.Self, true)
		if primary != r.Self {
			r.Send(primary, DoViewChange{r.Term})
		}
	}
	if primary == r.Self && r.Quorum(r.done) {
		r.serve(r.Term, "DOVIEWCHANGE of a quorum")
		r.Broadcast(StartView{r.Term})
	}
}

func (r *replica) answered(from int, view lsn.Term) {
	if view > r.latest {
		r.latest, r.led = view, false
	}
	r.led = r.led || view == r.latest && from == r.primary(view)
	r.answers.Put(from, true)
	f := len(r.Cfg.Order) - r.Cfg.Elector.QuorumSize()
	if r.led && r.answers.Count() > f {
		r.serve(r.latest, "RECOVERYRESPONSE of f + 1")
	}
}

func (r *replica) Tick() algorithm.Time {
	if r.Due(&r.timer) {
		switch {
		case r.status == recovering:
			r.timer = r.After(r.Timing.ElectionResult)
			r.Broadcast(Recovery{r.life})
		case r.Role == elector.Leader:
			r.timer = r.After(r.Timing.HeartbeatBroadcast)
			r.Broadcast(Commit{r.Term})
		case r.status == normal:
			r.enter(r.Term+1, "no COMMIT")
		default:
			r.enter(r.Term+1, "the view change did not succeed")
		}
	}
	return r.timer.When()
}
