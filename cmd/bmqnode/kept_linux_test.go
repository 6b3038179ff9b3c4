package main_test

import (
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// longRun is how long a test is to go on that measures what is promised, as the variable says. On a
// machine that has something else to do it would measure that, so it is skipped without one.
func longRun(t *testing.T, variable string) time.Duration {
	long, err := time.ParseDuration(os.Getenv(variable))
	if err != nil {
		t.Skip("takes long, on a machine that does nothing else: " + variable + "=10m (make kept)")
	}
	return long
}

// undisturbed is an option, and those that let nodes run before what else the machine does.
func undisturbed(option string, value any) map[string]any {
	return map[string]any{option: value, "rehearsal": true, "realtime": nodes.MayBeRealTime()}
}

// slow delays all that nodes send to each other, and loses a share of it.
func slow(s *nodes.Scene, delay time.Duration, loss float64) {
	s.Agree(s.Nodes(), nil) // all of them are there
	for _, n := range s.Nodes() {
		s.Fault(n, admin.FaultRequest{Links: []admin.LinkFault{{
			To: elector.AllMembers, Delay: cluster.Seconds(delay.Seconds()), Loss: loss,
		}}})
	}
}

// quiet watches the nodes for a while, and returns the transitions that they log meanwhile. If this
// process stands still for longer than the timers of a local network allow, so does the machine:
// what nodes log then is no word about them.
func quiet(s *nodes.Scene, long time.Duration) []admin.Event {
	began := time.Now()
	var still []time.Time
	for last := began; last.Sub(began) < long; {
		time.Sleep(time.Millisecond)
		now := time.Now()
		if stood := now.Sub(last); stood > 20*time.Millisecond {
			s.T.Logf("%s: the machine stood still for %s", now.Format(time.StampMilli), stood)
			still = append(still, now)
		}
		last = now
	}
	return s.Transitions(func(e admin.Event) bool {
		disturbed := func(at time.Time) bool { return e.Time.Sub(at).Abs() < time.Second }
		return e.Time.After(began) && !slices.ContainsFunc(still, disturbed)
	})
}

// A mistake a month, and a leader that hangs is suspected within 200 ms, on links of 1 ms: first no
// mistake for KEPT_TIME, then the leader is stopped KEPT_STOPS times (100).
func TestTheQualityOfServiceIsKept(t *testing.T) {
	long := longRun(t, "KEPT_TIME")
	stops, err := strconv.Atoi(cmp.Or(os.Getenv("KEPT_STOPS"), "100"))
	require.NoError(t, err)
	s := nodes.Play(t, 3, undisturbed("qos", map[string]any{
		"detect": "200ms", "mistakes": "1/30d", "accuracy": 0.99999,
	}))
	slow(s, time.Millisecond, 0)
	var led cluster.GroupStatus
	s.Eventually("the followers promise it", func() bool {
		led = s.Agree(s.Nodes(), nil)
		for _, n := range s.Others(led.Leader) {
			st, err := n.Status(t.Context())
			if err != nil || st.Groups[0].QoS == nil || !st.Groups[0].QoS.Met {
				return false
			}
		}
		return true
	})
	for _, n := range s.Others(led.Leader) {
		st, err := n.Status(t.Context())
		require.NoError(t, err)
		t.Logf("%s: %+v", n.Name, *st.Groups[0].QoS)
	}
	mistakes := quiet(s, long)
	t.Logf("%d transitions in %s", len(mistakes), long)

	var after []time.Duration // the stop, of each follower
	for len(after) < 2*stops {
		time.Sleep(3*time.Second + rand.N(time.Second))
		led = s.Agree(s.Nodes(), nil)
		stopped := time.Now()
		require.NoError(t, s.Named(led.Leader).Signal(syscall.SIGSTOP))
		s.Agree(s.Others(led.Leader), nodes.Above(led.Term))
		for _, n := range s.Others(led.Leader) {
			gone := func(e admin.Event) bool {
				return string(e.Node) == n.Name && e.Leader != led.Leader && e.Time.After(stopped)
			}
			s.Eventually(n.Name+" gives the leader up", func() bool { return len(s.Transitions(gone)) > 0 })
			first := s.Transitions(gone)[0]
			after = append(after, first.Time.Sub(stopped))
			if first.Time.Sub(stopped) > 205*time.Millisecond {
				t.Logf("%s after %s: %+v", n.Name, first.Time.Sub(stopped), first)
			}
		}
		require.NoError(t, s.Named(led.Leader).Signal(syscall.SIGCONT))
	}
	slices.Sort(after)
	t.Logf("%d stops: followers gave the leader up after a median of %s, p99 %s, worst %s",
		stops, after[len(after)/2], after[len(after)*99/100], after[len(after)-1])
	require.Empty(t, mistakes)
	require.Less(t, after[len(after)*99/100], 205*time.Millisecond, "it is stopped a moment later")
}

// A leader leads on while a share of frames and datagrams is lost, KEPT_LOSS (0.01), with links of
// 0.2 ms and the timers of a local network, for KEPT_TIME. How often a node was held up for half a
// period or more is shown: that is the machine's doing.
func TestLossMovesNoLeader(t *testing.T) {
	long := longRun(t, "KEPT_TIME")
	loss, err := strconv.ParseFloat(cmp.Or(os.Getenv("KEPT_LOSS"), "0.01"), 64)
	require.NoError(t, err)
	s := nodes.Play(t, 5, undisturbed("profile", "lan"))
	slow(s, 200*time.Microsecond, loss)
	time.Sleep(5 * time.Second)
	led, before := s.Agree(s.Nodes(), nil), heldUp(s)
	seen := quiet(s, long)
	moves := 0
	for _, e := range seen {
		t.Logf("%s %s: %s -> %s %s", e.Time.Format(time.StampMilli), e.Node, e.From, e.To, e.Reason)
		if nodes.BecameLeader(e) {
			moves++
		}
	}
	t.Logf("loss %g, %s: %d changes of leader; held up %v times, before %v", loss, long, moves,
		heldUp(s), before)
	require.Zero(t, moves)
	s.Agree(s.Nodes(), nodes.Same(led))
}

// heldUp is how often each node was held up, as it counts itself.
func heldUp(s *nodes.Scene) (times []string) {
	for _, n := range s.Nodes() {
		answer, err := http.Get("http://" + n.AdminAddr + "/metrics")
		require.NoError(s.T, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(s.T, errors.Join(err, answer.Body.Close()))
		for line := range strings.Lines(string(text)) {
			if rest, found := strings.CutPrefix(line, "bmqelect_stalls_total"); found {
				times = append(times, n.Name+": "+strings.TrimSpace(rest[strings.LastIndex(rest, " "):]))
			}
		}
	}
	return times
}
