package netmesh

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/stretchr/testify/require"
)

func TestNewerHeartbeatReplacesUnsentOlderOne(t *testing.T) {
	q := queue{limit: 3}
	cession := elector.Message{Kind: elector.LeadershipCession}
	push := func(group string, m elector.Message) bool { return q.push(group, &m) }
	require.True(t, push("g", heartbeat(1)))
	require.True(t, push("g", cession))
	require.True(t, push("other", heartbeat(9)))
	require.True(t, push("g", heartbeat(2)), "the queue is full, but one goes")
	require.False(t, push("g", ack(3)))

	waiting, dropped := q.state()
	require.Equal(t, 3, waiting)
	require.EqualValues(t, 1, dropped)
	require.Equal(t, []queued{{"g", cession}, {"other", heartbeat(9)}, {"g", heartbeat(2)}}, q.swap(nil),
		"the newer heartbeat must not overtake the cession")
}

func TestMeter(t *testing.T) {
	var m meter
	now := time.Now()
	m.pong(1, now) // nobody asked
	rtt, loss := m.read()
	require.Zero(t, rtt)
	require.Zero(t, loss)
	for i := range 10 {
		n := m.next(now, 0)
		if i%2 == 0 {
			m.pong(n, now.Add(8*time.Millisecond))
			m.pong(n, now.Add(time.Hour)) // twice
		}
	}
	rtt, loss = m.read()
	require.Equal(t, 8*time.Millisecond, rtt)
	require.InDelta(t, 4.0/9, loss, 1e-9, "the newest is on its way")
	for range 100 {
		m.next(now, 0)
	}
	_, loss = m.read()
	require.Equal(t, 1.0, loss)
	m.pong(1, now.Add(time.Hour)) // too old
	rtt, _ = m.read()
	require.Equal(t, 8*time.Millisecond, rtt)
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	b := backoff{min: 10 * time.Millisecond, max: 100 * time.Millisecond, random: rand.New(rand.NewPCG(1, 2))}
	for range 2 {
		for _, full := range []time.Duration{10, 20, 40, 80, 100, 100} {
			d := b.next()
			require.LessOrEqual(t, d, full*time.Millisecond)
			require.GreaterOrEqual(t, d, full*time.Millisecond/2)
		}
		b.reset()
	}
}

func TestNames(t *testing.T) {
	for r := ReasonNone; r < reasonEnd; r++ {
		require.NotEmpty(t, r.String())
	}
	require.Equal(t, "reason(200)", Reason(200).String())
	require.Equal(t, "in out both direction(0)", In.String()+" "+Out.String()+" "+Both.String()+" "+Direction(0).String())
	require.Equal(t, "idle dialing up", LinkIdle.String()+" "+LinkDialing.String()+" "+LinkIsUp.String())
}

func TestFaultsAreListedAndHealed(t *testing.T) {
	f := NewFaults()
	require.Equal(t, "none", f.String())
	f.Cut("b", In)
	f.Cut("b", Out)
	f.Delay("c", time.Second, -1)
	require.Equal(t, "b: cut both; c: delay 1s+0s", f.String())
	require.True(t, f.cut("b", In))
	require.False(t, f.cut("c", Both))
	f.Heal("b")
	f.Delay("c", 0, 0)
	require.Equal(t, "none", f.String())
	f.Cut(elector.AllMembers, Out)
	require.True(t, f.cut("anybody", Out))
	f.HealAll()
	require.False(t, f.cut("anybody", Both))
}

func TestHostileTextDoesNotReachTheLogRaw(t *testing.T) {
	f := farewell{Reason: 200, Text: "line\nbreak \x1b[31m"}
	require.Equal(t, "line break  [31m", f.refusal().Text)
}
