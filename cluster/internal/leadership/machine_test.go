package leadership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

const margin = 250 * time.Millisecond

// referee knows what was promised to each campaign, and holds the machine to it.
type referee struct {
	now      elector.Time
	lease    elector.Time // the newest end that the elector named; 0 if it does not lead
	answered map[leadership.ID]bool
	holder   leadership.ID // who holds a leadership that is not over
	stopped  bool          // it was told to stop
	deadline elector.Time  // of holder, once it was told
	released map[leadership.ID]bool
	guarded  bool // as the elector knows it
	able     bool // likewise
	pending  int  // requests that the elector has not been given
	closed   bool
	resigned bool          // no campaign may follow the present one
	present  leadership.ID // of the campaign that waits, or who was not released
	last     leadership.ID
}

// Whatever the inputs and their order, work is told to stop in time, is over at its deadline, and
// never overlaps with other work.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := leadership.New(leadership.Config{
			MayStand: true, AwaitCampaign: rapid.Bool().Draw(t, "await"),
			Margin: margin, Lease: time.Second,
		})
		r := &referee{
			now: 1, answered: map[leadership.ID]bool{}, released: map[leadership.ID]bool{}, able: true,
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			r.now += elector.Time(rapid.IntRange(0, 400).Draw(t, "ms") * int(time.Millisecond))
			in := r.draw(t)
			before := m.State()
			e := m.Step(r.now, in)
			r.judge(t, in, before, m.State(), e)
		}
	})
}

// draw returns a random input. Those of the elector are consistent.
func (r *referee) draw(t *rapid.T) leadership.Input {
	id := leadership.ID(rapid.IntRange(0, int(r.last)).Draw(t, "id"))
	if rapid.IntRange(0, 3).Draw(t, "another") > 0 {
		id = r.present
	}
	switch rapid.IntRange(0, 11).Draw(t, "input") {
	case 0, 1:
		r.last++
		return leadership.Campaign{ID: r.last, After: id}
	case 2:
		return leadership.GiveUp{ID: id}
	case 3:
		return leadership.Release{ID: id}
	case 4:
		return leadership.Resign{}
	case 5:
		if rapid.Bool().Draw(t, "candidacy") {
			return leadership.Candidacy{MayStand: rapid.Bool().Draw(t, "stand")}
		}
		return leadership.Fitness{Unfit: rapid.SampledFrom([]string{"", "disk full"}).Draw(t, "fit")}
	case 6:
		if rapid.IntRange(0, 4).Draw(t, "close") > 0 {
			return leadership.Tick{}
		}
		return leadership.Close{Abrupt: rapid.Bool().Draw(t, "abrupt")}
	case 7:
		r.lease, r.pending = 0, 0
		return leadership.Lost{Why: elector.LeaderPreempted}
	case 8:
		if r.lease == 0 {
			return leadership.Tick{}
		}
		by := min(r.lease, r.now+elector.Time(time.Second))
		return leadership.StopWork{By: by, Why: elector.Transferred}
	case 9:
		return leadership.Tick{}
	}
	// The elector has been given some of the requests.
	r.pending = rapid.IntRange(0, r.pending).Draw(t, "pending")
	left := elector.Time(rapid.IntRange(1, 1000).Draw(t, "lease") * int(time.Millisecond))
	r.lease = max(r.lease, r.now+left)
	if rapid.IntRange(0, 9).Draw(t, "without a lease") == 0 {
		r.lease = elector.Never
	}
	return leadership.Lease{
		Term: lsn.Term(1), End: r.lease,
		Handover: rapid.Bool().Draw(t, "handover"), Pending: r.pending > 0,
	}
}

func (r *referee) judge(
	t *rapid.T, in leadership.Input, before, after leadership.State, e leadership.Effects,
) {
	if release, ok := in.(leadership.Release); ok {
		r.released[release.ID] = true
	}
	if c, ok := in.(leadership.Campaign); ok && e.Refused != c.ID {
		require.False(t, r.closed || r.resigned, "a campaign after the end, or after Resign")
		require.True(t, r.present == 0 || r.present == c.After && before.Phase >= leadership.Stopping,
			"a campaign beside another, or beside work that was not released")
		r.released[c.After] = true
	}
	if e.Refused != 0 {
		require.False(t, r.answered[e.Refused], "answered twice")
		require.NotEqual(t, leadership.NotRefused, e.Refusal)
		r.answered[e.Refused] = true
	}
	r.judgeHolder(t, before, after, e)
	if e.Granted != 0 {
		lease, ok := in.(leadership.Lease)
		require.True(t, ok && !lease.Handover && !lease.Pending, "the elector has not agreed: %+v", in)
		require.False(t, r.answered[e.Granted] || r.closed, "answered twice, or closed")
		require.Zero(t, r.holder, "beside work that goes on")
		require.True(t, before.Phase == leadership.Waiting && before.ID == e.Granted)
		require.Greater(t, lease.End, r.now.Add(margin), "without time for work")
		r.answered[e.Granted], r.holder, r.stopped = true, e.Granted, false
	}
	for _, request := range e.Requests {
		r.pending++
		switch request := request.(type) {
		case elector.Guard:
			require.True(t, request.Held != r.guarded, "%+v twice", request)
			r.guarded = request.Held
		case elector.Eligible:
			require.True(t, request.Able != r.able, "%+v twice", request)
			r.able = request.Able
		case elector.Stop:
			r.closed = true
			abrupt := in.(leadership.Close).Abrupt && before.Phase.Working()
			require.Equal(t, abrupt, request.Abrupt, "leadership is handed over while work goes on")
		}
	}
	require.Equal(t, r.guarded, r.holder != 0, "what the elector knows of guarded work")
	require.Equal(t, r.holder != 0, after.Phase.Working())
	able := after.MayStand && after.Wanted() && after.Unfit == "" &&
		after.Phase != leadership.Overdue
	require.Equal(t, able, r.able, "what the elector knows of eligibility")
	require.Greater(t, e.Wake, r.now, "a wake-up that is due already")
	require.Equal(t, r.lease, after.LeaseEnd)
	if _, lost := in.(leadership.Lost); lost {
		require.True(t, !after.Phase.Working() || after.Deadline != elector.Never,
			"without a lease nothing would ever end it")
	}
	if _, resign := in.(leadership.Resign); resign {
		r.resigned = true
	}
	if r.present = after.ID; r.present != before.ID || r.present == 0 {
		r.resigned = false
	}
}

// judgeHolder follows the leadership that is not over.
func (r *referee) judgeHolder(
	t *rapid.T, before, after leadership.State, e leadership.Effects,
) {
	if e.Stop != elector.ReasonNone {
		require.True(t, r.holder == e.Holder && r.holder != 0 && !r.stopped, "told twice, or nobody")
		require.LessOrEqual(t, e.Deadline, max(before.Deadline, after.Deadline))
		r.stopped, r.deadline = true, e.Deadline
	}
	if r.stopped && r.holder != 0 {
		require.LessOrEqual(t, e.Deadline, r.deadline, "the deadline has moved on")
		r.deadline = e.Deadline
	}
	if e.Over {
		require.True(t, r.holder == e.Holder && r.stopped, "over twice, or before it was told")
		require.LessOrEqual(t, e.Deadline, r.now)
		require.False(t, e.Overdue && r.released[e.Holder], "released work is not overdue")
		r.holder, r.stopped = 0, false
	}
	switch after.Phase {
	case leadership.Serving:
		require.Greater(t, after.Deadline, r.now.Add(margin), "served past the lease minus the margin")
		require.LessOrEqual(t, after.Deadline, r.lease, "served past the lease")
		require.True(t, e.Wake <= after.Deadline.Add(-margin) || after.Deadline == elector.Never)
	case leadership.Stopping:
		require.Greater(t, after.Deadline, r.now, "past its deadline")
		require.Equal(t, after.Deadline, e.Wake)
	}
}
