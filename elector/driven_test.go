package elector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// driven is a machine with a clock, for tests that are easier to write in Go than in a script. The
// machine is node a, and its disk takes no time.
type driven struct {
	*elector.Machine
	now elector.Time
}

// reserving are the default bounds except for the number of terms that are reserved ahead.
func reserving(terms lsn.Term) *elector.Bounds {
	b := elector.DefaultBounds()
	b.Reserve = terms
	return &b
}

// boot starts node a among n voters a, b, c, ... in the given term.
func boot(t testing.TB, n int, term lsn.Term) *driven {
	return bootWith(t, elector.Config{}, n, term)
}

// bootWith is boot with a configuration that is not all default.
func bootWith(t testing.TB, cfg elector.Config, n int, term lsn.Term) *driven {
	return bootFrom(t, cfg, n, term, elector.Record{})
}

// bootFrom is bootWith with a record on the disk.
func bootFrom(
	t testing.TB, cfg elector.Config, n int, term lsn.Term, start elector.Record,
) *driven {
	cfg.Self, cfg.Identity, cfg.Timing = "a", directory("a"), elector.Article()
	for i := range n {
		cfg.Voters = append(cfg.Voters, elector.NodeID(rune('a'+i)))
	}
	cfg.Bounds = reserving(0)
	m, err := elector.New(cfg)
	require.NoError(t, err)
	d := &driven{Machine: m, now: elector.Time(time.Second)}
	d.step(elector.Start{Term: term, Record: start})
	for _, id := range cfg.Voters[1:] {
		d.step(elector.LinkUp{Peer: id})
	}
	d.now = d.now.Add(cfg.Timing.Promise()) // the embargo is over
	return d
}

func (d *driven) step(in elector.Input) elector.Effects {
	e := d.Step(d.now, 7, in)
	if e.Persist != (elector.Terms{}) {
		e = d.Step(d.now, 7, elector.Persisted{Term: e.Persist.Reserved, Record: e.Accept.LSN})
	}
	return e
}

func (d *driven) hear(from elector.NodeID, m elector.Message) elector.Effects {
	return d.step(elector.Received{From: from, Identity: directory(string(from)), Message: m})
}

// pass lets time pass until something is due, and it happens.
func (d *driven) pass() elector.Effects {
	d.now = d.Step(d.now, 7, elector.Tick{}).Wake
	return d.step(elector.Tick{})
}

// follower follows b in term 3.
func follower(t testing.TB) *driven {
	d := boot(t, 3, 2)
	d.hear("b", elector.Message{Kind: elector.LeaderHeartbeat, Term: 3, Sequence: 1,
		LSN: lsn.LSN{Term: 3}})
	require.Equal(t, elector.NodeID("b"), d.Status().Leader)
	return d
}

// voter has voted for b in term 3 and heard nothing since.
func voter(t testing.TB) *driven {
	d := boot(t, 3, 2)
	d.hear("b", elector.Message{Kind: elector.ElectionProposal, Term: 3})
	require.Equal(t, elector.NodeID("b"), d.Status().AwaitedLeader)
	return d
}

// scout is in an open scouting round for term 3.
func scout(t testing.TB, voters int) *driven {
	return boot(t, voters, 2).toScout()
}

// veteran is one of three that followed b in term 2 and lost it.
func veteran(t testing.TB) *driven {
	d := boot(t, 3, 1)
	d.hear("b", elector.Message{Kind: elector.LeaderHeartbeat, Term: 2, Sequence: 1})
	return d
}

// maxPasses bounds how long a test waits for a machine to act: a machine that spins at a deadline
// must fail the test, not hang it.
const maxPasses = 100

func (d *driven) toScout() *driven {
	for range maxPasses {
		if d.Status().Scouting {
			return d
		}
		d.pass()
	}
	panic("no scouting round was opened")
}

// candidate has proposed itself in term 3.
func candidate(t testing.TB, voters int) *driven {
	return scout(t, voters).toCandidate(t, voters)
}

func (d *driven) toCandidate(t testing.TB, voters int) *driven {
	round := d.State().Follower.Round
	for i := range elector.Majority(voters) - 1 {
		d.hear(elector.NodeID(rune('b'+i)), elector.Message{
			Kind: elector.ElectionScoutingResponse, Term: 2, ProposedTerm: 3, Round: round.ID,
			WillVote: true, Record: d.Record().Accepted.LSN,
		})
	}
	require.Equal(t, elector.Candidate, d.State().Role)
	return d
}

// leader leads term 3.
func leader(t testing.TB, voters int) *driven {
	return candidate(t, voters).toLeader(t, voters)
}

func (d *driven) toLeader(t testing.TB, voters int) *driven {
	for i := range elector.Majority(voters) - 1 {
		d.hear(elector.NodeID(rune('b'+i)), elector.Message{
			Kind: elector.ElectionProposalResponse, Term: 3, ProposedTerm: 3, SentAt: d.now, WillVote: true,
			Record: d.Record().Accepted.LSN,
		})
	}
	require.Equal(t, elector.Leader, d.State().Role)
	return d
}
