package storeliveness_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	. "github.com/bmqelect/bmqelect/internal/lab/algorithm/storeliveness"
)

const second = algorithm.Time(1e9)

// member is b of a and b, with support for 3 s. What it saves is durable when it says so.
type member struct {
	machine algorithm.Machine
	disk    algorithm.Disk
	wake    algorithm.Time
	raft    int // messages of Raft that left at once
	t       *testing.T
}

func start(t *testing.T, disk algorithm.Disk, now algorithm.Time) *member {
	m := &member{t: t, disk: disk, machine: raft.Fortified.New(algorithm.Config{
		Order: []algorithm.NodeID{"a", "b"},
		Elector: elector.Config{Self: "b", Quorum: 2,
			Timing: elector.Timing{HeartbeatBroadcast: 1e9, HeartbeatMissCount: 3}},
	})}
	m.step(now, algorithm.Start{Disk: disk, Clock: now})
	return m
}

// step returns what leaves: at once, which is nothing of a store's, and when all is durable.
func (m *member) step(now algorithm.Time, in algorithm.Input) (sent []algorithm.Message) {
	eff := m.machine.Step(now, 0, in)
	for _, e := range eff.Messages {
		require.IsType(m.t, raft.Message{}, e.Message)
	}
	m.wake, m.raft = eff.Wake, m.raft+len(eff.Messages)
	for _, e := range eff.Durable {
		sent = append(sent, e.Message)
	}
	if eff.Persist != nil {
		m.disk = eff.Persist
		sent = append(sent, m.step(now, elector.Persisted{})...)
	}
	return sent
}

// beat runs until the next heartbeat.
func (m *member) beat() Heartbeat {
	for {
		for _, sent := range m.step(m.wake, elector.Tick{}) {
			if beat, ok := sent.(Heartbeat); ok {
				return beat
			}
		}
	}
}

func (m *member) asked(now algorithm.Time, beat Heartbeat) HeartbeatResp {
	for _, sent := range m.step(now, algorithm.Received{From: "a", Message: beat}) {
		if answer, ok := sent.(HeartbeatResp); ok {
			return answer
		}
	}
	require.Fail(m.t, "there is no answer")
	return HeartbeatResp{}
}

func (m *member) answered(now algorithm.Time, given Support) {
	m.step(now, algorithm.Received{From: "a", Message: HeartbeatResp{Support: given, Now: now}})
}

// What is asked for is given, if it is of the present epoch, and later; of a higher epoch, always.
func TestSupportFor(t *testing.T) {
	for _, c := range []struct{ asked, given Support }{
		{Support{Epoch: 2, Expiration: 90 * second}, Support{Epoch: 2, Expiration: 90 * second}},
		{Support{Epoch: 2, Expiration: 91 * second}, Support{Epoch: 2, Expiration: 91 * second}},
		{Support{Epoch: 2, Expiration: 89 * second}, Support{Epoch: 2, Expiration: 90 * second}},
		{Support{Epoch: 1, Expiration: 95 * second}, Support{Epoch: 2, Expiration: 90 * second}},
		{Support{Epoch: 3, Expiration: 80 * second}, Support{Epoch: 3, Expiration: 80 * second}},
	} {
		m := start(t, nil, 0)
		m.asked(second, Heartbeat{Support: Support{Epoch: 2, Expiration: 90 * second}})
		require.Equal(t, c.given, m.asked(2*second, Heartbeat{Support: c.asked}).Support)
	}
}

// Support that has expired is withdrawn, for ever, in its epoch: except in the time of grace after
// the start, 13 s.
func TestWithdraw(t *testing.T) {
	asked := Heartbeat{Support: Support{Epoch: 1, Expiration: 4 * second}}
	m := start(t, nil, 0)
	m.asked(second, asked)
	require.Equal(t, asked.Support, m.asked(12*second, asked).Support)
	m.step(13*second, elector.Tick{})
	require.Equal(t, Support{Epoch: 2}, m.asked(13*second, asked).Support)
	asked.Expiration = 20 * second
	require.Equal(t, Support{Epoch: 2}, m.asked(13*second, asked).Support)
	asked.Epoch = 2
	require.Equal(t, asked.Support, m.asked(13*second, asked).Support)
}

// A store asks in the epoch that it was told last, and takes no lower one.
func TestSupportFrom(t *testing.T) {
	m := start(t, nil, 0)
	require.Equal(t, Support{Epoch: 1, Expiration: 4 * second}, m.beat().Support)
	m.answered(1100*second/1000, Support{Epoch: 5})
	m.answered(1200*second/1000, Support{Epoch: 3, Expiration: 90 * second})
	require.Equal(t, Support{Epoch: 5, Expiration: 5 * second}, m.beat().Support)
	for range 3 {
		m.beat()
	}
	require.Zero(t, m.raft) // so it has not the support of a quorum, and does not campaign
	m.answered(5*second, Support{Epoch: 5, Expiration: 90 * second})
	m.beat()
	m.beat()
	require.NotZero(t, m.raft)
}

// The hybrid clock goes forward to that of a message.
func TestHybridClock(t *testing.T) {
	m := start(t, nil, 0)
	require.Equal(t, 30*second, m.asked(second/2, Heartbeat{Now: 30 * second}).Now)
	require.Equal(t, 33*second, m.beat().Expiration)
	m.step(second, algorithm.Received{From: "a", Message: HeartbeatResp{Now: 40 * second}})
	require.Equal(t, 43*second, m.beat().Expiration)
}

// A store that restarts hears and says nothing until what it asked for is over, keeps what it
// gives, and asks in a new epoch.
func TestRestart(t *testing.T) {
	m := start(t, nil, 0)
	m.asked(second/2, Heartbeat{Support: Support{Epoch: 7, Expiration: 90 * second}})
	until := m.beat().Expiration
	m = start(t, m.disk, second)
	require.Equal(t, until, m.wake)
	ask := algorithm.Received{From: "a", Message: Heartbeat{Support: Support{Epoch: 8}}}
	require.Empty(t, m.step(2*second, ask))
	require.Equal(t, Support{Epoch: 2, Expiration: until + 3*second}, m.beat().Support)
	require.Equal(t, uint64(7), m.asked(until, Heartbeat{Support: Support{Epoch: 1}}).Epoch)
}

// A replica in the fortify lease drops votes, except for a log of a later term, and a transfer's.
func TestFortifyLease(t *testing.T) {
	for _, c := range []struct {
		vote  raft.Message
		voted bool
	}{
		{raft.Message{Kind: raft.RequestVote, Term: 9, LastLogTerm: 4}, false},
		{raft.Message{Kind: raft.RequestVote, Term: 9, LastLogTerm: 5}, true},
		{raft.Message{Kind: raft.RequestVote, Term: 9, LastLogTerm: 4, Transfer: true}, true},
		{raft.Message{Kind: raft.PreVote, Term: 9, LastLogTerm: 4}, false},
		{raft.Message{Kind: raft.PreVote, Term: 9, LastLogTerm: 5}, true},
	} {
		m := start(t, nil, 0)
		m.asked(second, Heartbeat{Support: Support{Epoch: 1, Expiration: 90 * second}})
		from := func(msg raft.Message) []algorithm.Message {
			return m.step(20*second, algorithm.Received{From: "a", Message: msg})
		}
		from(raft.Message{Kind: raft.AppendEntries, Term: 4})
		from(raft.Message{Kind: raft.FortifyLeader, Term: 4})
		voted := len(from(c.vote)) > 0
		require.Equal(t, c.voted, voted, "%+v", c.vote)
	}
}
