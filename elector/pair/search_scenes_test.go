package pair_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules that are broken on purpose.
const (
	anyRevision     = "16.4: an ack above the revision that was read counts"
	leaveUnwritten  = "16.2: the promise of the pair is not written down at a leave"
	endUnwritten    = "16.2: nor at the end of the session"
	anyTerm         = "16.4: an ack counts in any term"
	revisionFirst   = "16.3: the revision is read before the promise"
	fromArrival     = "16.4: the lease begins when the ack arrives"
	anyAckSession   = "16.4: acks of any session count"
	joinsUnpromised = "16.1: who has not promised joins"
	unfresh         = "16.5: an election joins without a heartbeat"
	readsDead       = "16.6: the session is read on after the proof"
	deathInSetOnly  = "16.6: a death reaches the followed set only"
	diedFirst       = "16.6: a death is told before the promise of the pair is written down"
	unnoticedGap    = "16.2: changes are lost unnoticed"
	anySequence     = "16.3: a beat that was taken counts again"
	anySession      = "16.3: beats of any session count"
	neverSays       = "16.1: heartbeats only after an election and in a new session"
	neverDisowns    = "16.8: nobody says that it does not lead"
	neverAnew       = "16.8, 16.9: nobody begins anew after a change was lost"
	neverBegins     = "16.8: who reads past a lost change does not say so"
	mirrorMoves     = "16.8: the leader's machine changes the mirror"
	tickless        = "16.4: a change lets acks count after the lease ended"
	syncLate        = "16.4: Backed is told after the lease ended"
)

// scenes are what is searched.
var scenes = []scene{
	{name: "one leader", leaders: 1, sessions: 1, terms: 1, beats: 1, others: true},
	{name: "one leader, few events", leaders: 1, sessions: 1, terms: 1, others: true,
		without: []deed{suspects, stops}},
	{name: "it leads on", leaders: 1, sessions: 1, beats: 1, says: 1, others: true, warm: true},
	{name: "two sessions", leaders: 1, sessions: 2, beats: 1, others: true, warm: true,
		without: []deed{stops}},
	{name: "a restart", leaders: 1, sessions: 2, beats: 1, others: true, warm: true, restarts: 1,
		without: []deed{suspects, stops}},
	{name: "a death", leaders: 1, sessions: 1, beats: 1, says: 1, others: true, warm: true,
		dies: true},
	{name: "a vote", leaders: 1, sessions: 1, terms: 1, beats: 1, others: true, warm: true,
		votes: true, without: []deed{stands, elected}},
	{name: "the same leader again", leaders: 1, sessions: 1, terms: 1, beats: 1, others: true,
		warm: true},
	{name: "a new term, few events", leaders: 1, sessions: 1, terms: 1, beats: 1, others: true,
		warm: true, without: []deed{suspects, stops, cuts}},
	{name: "a lost message", leaders: 1, sessions: 1, beats: 2, others: true, warm: true, loses: 1},
	{name: "a slow disk", leaders: 1, sessions: 1, terms: 1, beats: 1, others: true, warm: true,
		slowDisk: true, without: []deed{cuts, stops}},
	{name: "a slow disk, few events", leaders: 1, sessions: 1, terms: 1, beats: 1, others: true,
		warm: true, slowDisk: true, without: []deed{cuts, stands, cedes},
		limit: 400_000}, // it finds the promise that is missing when the disk has written
	{name: "two leaders", leaders: 2, sessions: 1, terms: 1, beats: 1, says: 1, warm: true},
	{name: "two leaders, no cut", leaders: 2, sessions: 1, terms: 1, warm: true,
		without: []deed{suspects, stops, cuts}},
	{name: "two leaders, few events", leaders: 2, sessions: 1, terms: 1, warm: true,
		without: []deed{suspects, stops}},
	{name: "two leaders, two sessions", leaders: 2, sessions: 2, terms: 1, beats: 1, warm: true},
	{name: "two leaders, a restart", leaders: 2, sessions: 2, terms: 1, beats: 1, warm: true,
		restarts: 1, without: []deed{suspects, stops}},
}

func TestSearch(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			s.limit, s.calm = limit(t, max(s.limit, 10_000)), 4
			holds(t, s)
		})
	}
}

// limit is SEARCH_STATES, or what a test that is run by everybody has time for.
func limit(t *testing.T, usual int) int {
	v := os.Getenv("SEARCH_STATES")
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err, "SEARCH_STATES is the number of states at which a search ends; 0 for none")
	return n
}

// TestBrokenRules breaks each rule, and sees that a search finds it.
func TestBrokenRules(t *testing.T) {
	one := scene{leaders: 1, sessions: 1, terms: 1, beats: 2, says: 1, others: true}
	with := func(broken string, change func(s *scene)) scene {
		s := one
		s.broken, s.name = broken, broken
		change(&s)
		return s
	}
	for _, s := range []scene{
		with(anyRevision, func(s *scene) {}),
		with(anyRevision, func(s *scene) {
			s.name += ", leases"
			*s = scene{name: s.name, broken: s.broken, leaders: 2, warm: true, sessions: 1, terms: 1,
				beats: 1, leases: true, without: []deed{cuts, stops, cedes}}
		}),
		with(endUnwritten, func(s *scene) {
			s.name += ", leases"
			*s = scene{name: s.name, broken: s.broken, leaders: 2, warm: true, sessions: 1, terms: 1,
				beats: 1, leases: true, without: []deed{suspects, stops, cedes}}
		}),
		with(leaveUnwritten, func(s *scene) { s.warm = true }),
		with(endUnwritten, func(s *scene) { s.warm = true }),
		with(anyTerm, func(s *scene) { s.terms = 2 }),
		with(revisionFirst, func(s *scene) {}),
		with(fromArrival, func(s *scene) {}),
		with(joinsUnpromised, func(s *scene) {
			s.restarts, s.sessions, s.warm, s.terms = 1, 2, true, 0
		}),
		with(readsDead, func(s *scene) { s.dies = true }),
		with(deathInSetOnly, func(s *scene) { s.dies = true }),
		with(unnoticedGap, func(s *scene) { s.loses, s.warm = 1, true }),
		with(anySequence, func(s *scene) {}),
		with(anySession, func(s *scene) { s.sessions = 2 }),
		with(neverSays, func(s *scene) { s.calm = 1 }),
		with(neverDisowns, func(s *scene) { s.calm, s.loses, s.warm = 1, 1, true }),
		with(neverAnew, func(s *scene) { s.calm, s.loses, s.warm = 1, 1, true }),
		with(mirrorMoves, func(s *scene) {}),
		with(syncLate, func(s *scene) { s.others = false }),
		with(tickless, func(s *scene) {
			s.warm, s.others, s.says, s.beats = true, false, 0, 1
			s.without = []deed{cuts, suspects, cedes, stops}
		}),
	} {
		t.Run(s.name, func(t *testing.T) {
			s.limit = limit(t, 400_000)
			err := searched(t, s)
			require.Error(t, err, "the broken rule is not found")
			t.Log(err)
		})
	}
}

// TestHarmlessRules breaks rules that a second rule makes up for. A search that finds one of them
// must be told from one that found a hole.
func TestHarmlessRules(t *testing.T) {
	for _, s := range []scene{
		{broken: diedFirst, leaders: 1, sessions: 1, beats: 1, others: true, warm: true, dies: true},
		{broken: anyAckSession, leaders: 1, sessions: 2, beats: 1, others: true, warm: true},
		{broken: unfresh, leaders: 1, sessions: 1, terms: 1, beats: 1, others: true, warm: true,
			slowDisk: true, without: []deed{cuts, stands, cedes}},
		{broken: neverBegins, leaders: 1, sessions: 1, beats: 1, others: true, warm: true, loses: 1,
			calm: 4},
	} {
		t.Run(s.broken, func(t *testing.T) {
			s.name, s.limit = s.broken, limit(t, 30_000)
			holds(t, s)
		})
	}
}
