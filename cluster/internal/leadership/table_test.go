package leadership_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
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
		"waits; asks the elector whether it leads",
		"is refused: busy", "is refused: busy", "is refused: busy", "is refused: busy",
	},
	{
		"Campaign after the holder", leadership.Campaign{ID: 2, After: 1},
		"waits; asks the elector whether it leads",
		"is refused: busy", "is refused: busy",
		"the leadership is over; waits; asks the elector", "waits; asks the elector",
	},
	{"GiveUp", leadership.GiveUp{ID: 1}, "", "", "tells the work to stop by its deadline", "", ""},
	{
		"Release", leadership.Release{ID: 1}, "",
		"withdraws the campaign; the elector resigns",
		"tells the work to stop; the leadership is over; the elector resigns",
		"the leadership is over; the elector resigns", "the elector resigns",
	},
	{
		"Resign", leadership.Resign{},
		"the elector resigns", "refuses the campaign; the elector resigns",
		"the elector resigns; no campaign may follow", "the elector resigns; no campaign may follow",
		"the elector resigns; no campaign may follow",
	},
	{
		"Fit (not fit)", leadership.Fit{Why: "disk full"},
		"the node is not to stand", "the node is not to stand",
		"the node is not to lead, as soon as another can",
		"the node is not to lead, as soon as another can",
		"notes it",
	},
	{
		"Close", leadership.Close{},
		"the elector stops", "refuses the campaign; the elector stops",
		"the elector stops, after the work", "the elector stops, after the work", "the elector stops",
	},
	{
		"Close (abrupt)", leadership.Close{Abrupt: true},
		"the elector stops", "refuses the campaign; the elector stops",
		"tells the work to stop; the elector stops without handing over",
		"the elector stops without handing over", "the elector stops",
	},
	{
		"Lease", leadership.Lease{Term: 3, End: leaseLasts},
		"notes it", "grants the campaign, unless a handover or a request is open or time is short",
		"moves the deadline to its end", "notes it; the deadline stays", "notes it",
	},
	{
		"StopWork", leadership.StopWork{By: elector.Time(2 * time.Second), Why: elector.Transferred},
		"", "", "tells the work to stop, by that time at the latest",
		"the deadline is that time, if it was later", "",
	},
	{
		"Lost", leadership.Lost{Why: elector.LeaderPreempted},
		"notes it", "notes it", "tells the work to stop; the leadership is over",
		"the work has until its deadline; without one the leadership is over", "notes it",
	},
	{
		"Tick (margin before the deadline)", leadership.Tick{},
		"", "", "tells the work to stop by its deadline", "", "",
	},
	{
		"Tick (deadline)", leadership.Tick{},
		"", "", "tells the work to stop; the leadership is over; it is overdue",
		"the leadership is over; it is overdue", "",
	},
}

func (r *row) cells() []string {
	return []string{r.idle, r.waiting, r.serving, r.stopping, r.overdue}
}

// inPhase is a machine at 1 s whose node leads, by a lease to 3 s, in the given phase.
func inPhase(p leadership.Phase) *leadership.Machine {
	m := leadership.New(leadership.Config{
		Candidate: true, AwaitCampaign: true, Margin: 250 * time.Millisecond, Lease: time.Second,
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
					{e.Refused == 2, "is refused: busy"},
					{e.Refused == 1, "refuses the campaign"},
					{e.Stop != elector.ReasonNone, "tells the work to stop"},
					{e.Overdue, "it is overdue"},
					{e.Granted != 0, "grants"},
					{asked(e, elector.Resign{}), "the elector resigns"},
					{asked(e, elector.Stop{}) || asked(e, elector.Stop{Abrupt: true}), "the elector stops"},
					{asked(e, elector.Stop{Abrupt: true}), "without handing over"},
				} {
					require.Equal(t, say.is, strings.Contains(text, say.text), "%q: %+v", say.text, e)
				}
				require.Equal(t, e.Over, strings.Contains(text, "leadership is over") &&
					!strings.Contains(text, "without one"))
			})
		}
	}
}

func asked(e leadership.Effects, want elector.Input) bool {
	for _, in := range e.Requests {
		if in == want {
			return true
		}
	}
	return false
}

// TestTablePage compares docs/leadership_table.md with the table; -rewrite writes it.
func TestTablePage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Life of a leadership: input x phase

What each input does with the campaign and the leadership that a node has in one election. A dash
means that it does nothing. A node is idle while nobody campaigns on it, waiting until a campaign is
granted, serving while guarded work may go on, stopping once the work was told to stop, and overdue
when its deadline has passed, or the leadership was lost, and the work has not been released.
Whether the node is to stand follows from phase and fitness; the elector is told when that changes.
The tests of package cluster/internal/leadership write this page, from the table that they check the
machine against (` + "`go test ./cluster/internal/leadership -run TestTable -rewrite`" + `).

| input | idle | waiting | serving | stopping | overdue |
| --- | --- | --- | --- | --- | --- |
`)
	for _, r := range table {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, text := range r.cells() {
			if text == "" {
				text = "-"
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteString("\n")
	}
	const path = "../../../docs/leadership_table.md"
	if flag.Lookup("rewrite").Value.String() == "true" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "run this test with -rewrite")
}
