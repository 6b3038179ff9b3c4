package member_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
	"github.com/bmqelect/bmqelect/lsn"
)

// Beat is the only message of the example: its text is "Beat term=3".
type Beat struct{ Term lsn.Term }

// rules are the example: who has heard no leader for a while leads, in the next term.
type rules struct {
	*member.Member
	beat, silent member.Timer
}

func begin(m *member.Member) member.Rules {
	r := &rules{Member: m}
	m.Term, _ = m.Disk.(lsn.Term)
	r.silent = m.After(m.Timing.Inactivity() + m.Draw(m.Timing.MaxRandomWait))
	return r
}

func (r *rules) Receive(from int, msg algorithm.Message) {
	if msg, ok := msg.(Beat); ok && msg.Term >= r.Term {
		r.Term, r.silent, r.beat = msg.Term, r.After(r.Timing.Inactivity()), member.Timer{}
		r.Become(elector.Follower, from, "Beat")
	}
}

func (r *rules) Tick() algorithm.Time {
	if r.Due(&r.silent) {
		r.Term, r.beat = r.Term+1, r.After(0)
		r.Become(elector.Leader, r.Self, "silence")
	}
	if r.Due(&r.beat) {
		r.beat = r.After(r.Timing.HeartbeatBroadcast)
		r.Hold(member.All, Beat{r.Term}) // leaves when the term is durable
	}
	r.Save(r.Term)
	return member.Earliest(r.beat, r.silent)
}

var example = algorithm.Algorithm{Name: "example", New: member.Maker(begin)}

// TestExample plays it: there is one write at a time, and what is held
// leaves with the one that has all that was saved before it.
func TestExample(t *testing.T) {
	timing := elector.Timing{HeartbeatBroadcast: time.Second, HeartbeatMissCount: 3,
		MaxRandomWait: time.Second}
	s := script.New(example, timing, "a", "b")
	for _, step := range []struct{ lines, want string }{
		{"hold-disks\nentropy 0 a\nstart a b", "0s a FOLLOWER; start\n0s b FOLLOWER; start\n"},
		{"advance 3s", "3s a LEADER leader=a term=1; silence\n3s a persists 1\n"},
		{"advance 1s\ncut a b\ndurable a", "3.5s b LEADER leader=b term=1; silence\n" +
			"3.5s b persists 1\n4s a -> *: Beat term=1\n4s a -> *: Beat term=1\n"},
		{"stop a\nviews", "4s a DORMANT; stop\n4s a DORMANT\n4s b LEADER leader=b term=1\n"},
		{"crash a\nstart a\nrun 1s", "4s a FOLLOWER term=1; start\n"},
	} {
		require.Equal(t, step.want, s.Play(step.lines), step.lines)
	}
}

func TestSet(t *testing.T) {
	s := member.Of(0, 127, member.Nobody, member.Store)
	require.Equal(t, 2, s.Count())
	require.True(t, s.Has(127))
	require.False(t, s.Has(member.Nobody))
	s.Put(127, false)
	require.Equal(t, member.Of(0), s)
}

func TestOwner(t *testing.T) {
	m := member.Member{Cfg: algorithm.Config{Order: []algorithm.NodeID{"a", "b"}}}
	for pid, want := range []int{member.Nobody, 1, 0, member.Nobody} { // others had three voters
		rank, term := m.Owner(member.Ballot{N: 4, Pid: uint64(pid)})
		require.Equal(t, want, rank)
		require.Equal(t, lsn.Term(8+pid), term)
	}
}

func TestTimers(t *testing.T) {
	m := member.Member{Now: 5}
	var never member.Timer
	at := m.After(0)
	require.Equal(t, elector.Never, never.When())
	require.Equal(t, algorithm.Time(5), member.Earliest(never, at, member.At(7)))
	require.False(t, m.Due(&never))
	require.True(t, m.Due(&at))
	require.False(t, m.Due(&at), "it is disarmed")
}
