package elector_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// The rules that are broken on purpose.
const (
	anyRevision    = "16.4: an ack above the revision that was read counts"
	anyTerm        = "16.4: an ack counts in any term"
	fromArrival    = "16.4: the lease begins when the ack arrives"
	tooLate        = "16.4: an ack counts after the lease ended"
	leaveUnwritten = "16.2: the promise of the pair is not written down at a leave"
	endUnwritten   = "16.2: nor at the end of the session"
	unnoticedGap   = "16.2: changes are lost unnoticed"
	anySequence    = "16.3: a beat that was taken counts again"
	unfresh        = "16.5: an election joins without a heartbeat"
	neverSays      = "16.1: heartbeats only after an election and in a new session"
	neverAnew      = "16.8, 16.9: nobody begins anew after a change was lost"
	neverBegins    = "16.8: who reads past a lost change does not say so"
	neverDisowns   = "16.8: nobody says that it does not lead"
)

// kept checks that an event shortens no promise without a cause: time, a cession, a leader of a
// higher term, a proof of death, or the end of the process; and that no lease that has ended comes
// back.
func (x *search) kept(before, after *snapshot, e event) error {
	for i := range x.nodes {
		if !x.pairs || x.leases || before.peers[i].machine < 0 || after.peers[i].machine < 0 ||
			before.peers[i].lives != after.peers[i].lives {
			continue
		}
		then, is := x.effective(before, i), x.effective(after, i)
		was, now, end := then.Promise, is.Promise, then.Leader.LeaseEnd
		if e.what == tick || e.what == heldUp {
			was.Until -= unit
			end -= unit
		}
		if then.Role == elector.Leader && is.Leader.Term == then.Leader.Term && end <= noon(i) &&
			is.Leader.LeaseEnd > noon(i) {
			return fmt.Errorf("the lease of %s comes back after its end", x.voters[i])
		}
		goesOn := now.To == was.To && now.Until >= was.Until
		if is.Role == elector.Dormant || was.Until <= noon(i) || goesOn {
			continue
		}
		freed := e.what == died && x.voters[e.number] == was.To
		if e.what == received || e.what == receivedTwice {
			p := &x.parcels[e.number]
			freed = p.msg.Kind == elector.LeadershipCession && x.voters[p.from] == was.To ||
				p.kind == 0 && p.msg.Kind == elector.LeaderHeartbeat && p.msg.Term > was.Term
		}
		if !freed {
			return fmt.Errorf("%s has promised %s until %s, and now %s until %s", x.voters[i], was.To,
				was.Until, now.To, now.Until)
		}
	}
	return nil
}

// violated is a search's report of what is wrong, in place of a failed test.
type violated struct {
	testing.TB
	said string
}

func (v *violated) Fatalf(format string, args ...any) {
	v.said = fmt.Sprintf(format, args...)
	panic(v)
}

// violation searches a scene, and returns what is wrong with it.
func (s scene) violation(t *testing.T) (said string) {
	v := &violated{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(v) {
			panic(r)
		}
		said = v.said
	}()
	(&search{scene: s, t: v}).run()
	return ""
}

// TestBrokenPairs breaks rules of pairs, and sees what a search finds. Where that is nothing, a
// second rule makes up for the first, or it is elector/pair that judges what goes wrong.
func TestBrokenPairs(t *testing.T) {
	const unbound = "only 1 voters are bound for so long"
	for _, b := range []struct {
		rule, finds string
		limit       int // states
		change      func(*scene)
	}{
		{anyRevision, unbound, 20_000, func(s *scene) {}},
		{fromArrival, unbound, 20_000, func(s *scene) { s.life, s.timing = 1, quanta(1, 3, 0) }},
		{tooLate, "the lease of a comes back", 20_000, func(s *scene) { s.life, s.stalls = 1, 1 }},
		{leaveUnwritten, "has promised", 20_000, func(s *scene) {
			s.orders, s.ordered = []elector.Input{elector.Stop{}}, 1
		}},
		{endUnwritten, unbound, 20_000, func(s *scene) { s.cuts = 1 }},
		{neverSays, "nobody ever leads", 20_000, func(s *scene) {
			pairUp(s, 3)
			s.stands = []int{0}
		}},
		{neverAnew, "nobody ever leads", 20_000, func(s *scene) {
			pairUp(s, 3)
			s.stands, s.misses = []int{0}, 1
		}},
		{anyTerm, "", 5_000, func(s *scene) { s.life, s.terms = 1, 2 }},
		{unnoticedGap, "", 5_000, func(s *scene) { s.misses = 1 }},
		{anySequence, "", 5_000, func(s *scene) { s.twins = 1 }},
		{unfresh, "", 5_000, func(s *scene) { s.cuts = 1 }},
		{neverBegins, "", 5_000, func(s *scene) { s.misses = 1 }},
		{neverDisowns, "", 5_000, func(s *scene) { s.misses = 1 }},
	} {
		t.Run(b.rule, func(t *testing.T) {
			s := paired
			s.name, s.broken, s.limit = b.rule, b.rule, b.limit
			b.change(&s)
			said := s.violation(t)
			if b.finds == "" {
				require.Empty(t, said)
				return
			}
			require.Contains(t, said, b.finds)
			t.Log(said)
		})
	}
}
