package leadership_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

const leaseLasts = elector.Time(10 * time.Second)

// row says what an input does in each phase; "" means that it does nothing there.
type row struct {
	name                                      string
	in                                        leadership.Input
	idle, waiting, serving, stopping, overdue string
}

var table = []row{
	{
		"Campaign", leadership.Campaign{ID: 2},
		"waits; asks the elector",
		"busy", "busy", "busy", "busy",
	},
	{
		"Campaign after the holder", leadership.Campaign{ID: 2, After: 1},
		"waits; asks the elector",
		"busy", "busy",
		"it is over; waits; asks the elector", "waits; asks the elector",
	},
	{"GiveUp", leadership.GiveUp{ID: 1}, "", "", "work must stop by its deadline", "", ""},
	{
		"Release", leadership.Release{ID: 1}, "",
		"campaign withdrawn; elector resigns",
		"work must stop; it is over; elector resigns",
		"it is over; elector resigns", "elector resigns",
	},
	{
		"Resign", leadership.Resign{},
		"elector resigns", "campaign refused; elector resigns",
		"elector resigns; no campaign may follow", "elector resigns; no campaign may follow",
		"elector resigns; no campaign may follow",
	},
	{
		"Fitness (unfit), Candidacy (no)", leadership.Fitness{Unfit: "disk full"},
		"may not stand", "may not stand",
		"is to hand over",
		"is to hand over",
		"notes it",
	},
	{
		"Prefer", leadership.Prefer{Priority: 7},
		"elector is told", "elector is told", "elector is told", "elector is told",
		"elector is told",
	},
	{
		"Close", leadership.Close{},
		"elector stops", "campaign refused; elector stops",
		"elector stops, after the work", "elector stops, after the work", "elector stops",
	},
	{
		"Close (abrupt)", leadership.Close{Abrupt: true},
		"elector stops", "campaign refused; elector stops",
		"work must stop; elector stops without handing over",
		"elector stops without handing over", "elector stops",
	},
	{
		"Lease", leadership.Lease{Term: 3, End: leaseLasts},
		"notes it", "grants it, unless a handover or request is open or time is short",
		"its end is the deadline", "notes it; the deadline stays", "notes it",
	},
	{
		"StopWork", leadership.StopWork{By: elector.Time(2 * time.Second), Why: elector.Transferred},
		"", "", "work must stop, by that time",
		"deadline not after that time", "",
	},
	{
		"Lost", leadership.Lost{Why: elector.LeaderPreempted},
		"notes it", "notes it", "work must stop; it is over",
		"goes on to the deadline; without one it is over", "notes it",
	},
	{
		"Tick (margin before the deadline)", leadership.Tick{},
		"", "", "work must stop by its deadline", "", "",
	},
	{
		"Tick (deadline)", leadership.Tick{},
		"", "", "work must stop; it is over; it is overdue",
		"it is over; it is overdue", "",
	},
}

func (r *row) cells() []string {
	return []string{r.idle, r.waiting, r.serving, r.stopping, r.overdue}
}

// inPhase is a machine at 1 s whose node leads, by a lease to 3 s, in the given phase.
func inPhase(p leadership.Phase) *leadership.Machine {
	m := leadership.New(leadership.Config{
		MayStand: true, AwaitCampaign: true, Margin: 250 * time.Millisecond, Lease: time.Second,
	})
	now := elector.Time(time.Second)
	lease := leadership.Lease{Term: 2, End: elector.Time(3 * time.Second)}
	steps := []leadership.Input{
		leadership.Tick{}, leadership.Campaign{ID: 1}, lease, leadership.GiveUp{ID: 1},
	}
	for _, in := range steps[:min(int(p), 3)+1] {
		m.Step(now, in)
	}
	if p < leadership.Serving {
		m.Step(now, leadership.Lease{Term: 2, End: lease.End, Pending: true})
	}
	if p == leadership.Overdue {
		m.Step(lease.End, leadership.Tick{})
		m.Step(lease.End, lease)
	}
	return m
}

// Every cell of the table is what the machine does: nothing where it says nothing.
func TestTable(t *testing.T) {
	for _, r := range table {
		for p, text := range r.cells() {
			t.Run(fmt.Sprintf("%s in %s", r.name, leadership.Phase(p)), func(t *testing.T) {
				m := inPhase(leadership.Phase(p))
				require.Equal(t, leadership.Phase(p).String(), m.State().Phase.String())
				now := elector.Time(1100 * time.Millisecond)
				switch {
				case r.name == "Tick (deadline)" || p == int(leadership.Overdue):
					now = elector.Time(3 * time.Second)
				case strings.HasPrefix(r.name, "Tick"):
					now = elector.Time(2750 * time.Millisecond)
				}
				before := m.State()
				e := m.Step(now, r.in)
				after := m.State()
				acts := before != after || len(e.Requests) > 0 || e.Refused != 0 || e.Stop != 0 || e.Over
				require.Equal(t, text != "", acts, "%+v\n%+v", after, e)
				for _, say := range []struct {
					is   bool
					text string
				}{
					{e.Refused == 2, "busy"},
					{e.Refused == 1, "campaign refused"},
					{e.Stop != elector.ReasonNone, "work must stop"},
					{e.Overdue, "it is overdue"},
					{e.Granted != 0, "grants"},
					{asked(e, elector.Resign{}), "elector resigns"},
					{asked(e, elector.Stop{}) || asked(e, elector.Stop{Abrupt: true}), "elector stops"},
					{asked(e, elector.Stop{Abrupt: true}), "without handing over"},
				} {
					require.Equal(t, say.is, strings.Contains(text, say.text), "%q: %+v", say.text, e)
				}
				require.Equal(t, e.Over, strings.Contains(text, "it is over") &&
					!strings.Contains(text, "without one"))
			})
		}
	}
}

// One row of the table is about two inputs.
func TestANodeThatIsNoCandidateDoesWhatAnUnfitOneDoes(t *testing.T) {
	for p := leadership.Idle; p <= leadership.Overdue; p++ {
		now := elector.Time(3 * time.Second)
		unfit := inPhase(p).Step(now, leadership.Fitness{Unfit: "disk full"})
		require.Equal(t, unfit, inPhase(p).Step(now, leadership.Candidacy{}), p)
	}
}

func asked(e leadership.Effects, want elector.Input) bool {
	return slices.Contains(e.Requests, want)
}

// TestTablePage compares docs/leadership_table.md with the table; -rewrite writes it.
func TestTablePage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Life of a leadership: input x phase

A node is idle while nobody campaigns on it, waiting until a campaign is granted, serving while
guarded work may go on, stopping once it was told to stop, and overdue if it was not released by its
deadline or the loss of leadership. "It" is the leadership. In a phase that is not named, nothing
happens. Written by ` + "`go test ./cluster/internal/leadership -run TestTable -rewrite`" + `.

`)
	var phases []string
	for p := leadership.Idle; p <= leadership.Overdue; p++ {
		phases = append(phases, p.String())
	}
	for _, r := range table {
		b.WriteString(testkit.Item(r.name, phases, r.cells()))
	}
	testkit.Golden(t, "../../../docs/leadership_table.md", b.String())
}
