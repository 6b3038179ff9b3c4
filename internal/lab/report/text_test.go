package report_test

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
	"github.com/bmqelect/bmqelect/lsn"
)

func text(t *testing.T, o report.TextOptions, runs ...verdict.Run) string {
	t.Helper()
	return string(written(t, func(b *bytes.Buffer) error { return report.Text(b, runs, o) }))
}

func TestTextGolden(t *testing.T) {
	for name, c := range map[string]struct {
		options report.TextOptions
		runs    []verdict.Run
	}{
		"single.txt":    {report.TextOptions{}, []verdict.Run{takeover()}},
		"wide.txt":      {report.TextOptions{Width: 120}, []verdict.Run{takeover()}},
		"color.txt":     {report.TextOptions{Color: true}, []verdict.Run{takeover()}},
		"compare.txt":   {report.TextOptions{}, []verdict.Run{takeover(), steady()}},
		"hostile.txt":   {report.TextOptions{}, []verdict.Run{hostile()}},
		"nothing.txt":   {report.TextOptions{}, nil},
		"split.txt":     {report.TextOptions{Color: true}, []verdict.Run{split(), steady()}},
		"ping-pong.txt": {report.TextOptions{}, []verdict.Run{pingPong(400)}},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, []byte(text(t, c.options, c.runs...))) })
	}
}

// What the file teaches is true of what is written in it. Beside other runs, only what its
// timeline does is said of all.
func TestOnlyWhatIsTrueOfAllIsSaidOfAll(t *testing.T) {
	of, other := takeover(), takeover()
	other.About = ""
	for i := range 9 {
		at := time.Duration(60+i) * sec
		of.History.Marks = append(of.History.Marks, history.Mark{At: at, Text: "x"})
	}
	other.History.Marks = of.History.Marks
	const faults = "  What happens: 20s isolate a; 40s heal all; 45s pause b; 48s crash d; 50s\n" +
		"  resume b; 52s transfer to b; 55s restart d; 60s x; 8 more.\n"
	for name, runs := range map[string][]verdict.Run{
		"of one": {of, other}, "of none": {other}, "of all": {of, of},
	} {
		before, after, _ := strings.Cut(text(t, report.TextOptions{}, runs...), "quorum 3 of 4")
		require.Equal(t, name == "of all", strings.Contains(before, of.About[:50]), name)
		require.Equal(t, name == "of one", strings.Contains(after, of.About[:50]), name)
		require.Equal(t, name != "of all", strings.Contains(before, faults), name)
	}
}

func TestALiveRunHasNoSeedAndCountsNoMessages(t *testing.T) {
	run := takeover()
	run.History.Mode = "live"
	all := text(t, report.TextOptions{}, run)
	require.Contains(t, all, "\n  live, 60s, quorum")
	require.NotRegexp(t, `(?m)^  messages `, all)
	runs := []verdict.Run{run}
	picture := string(written(t, func(b *bytes.Buffer) error { return report.SVG(b, runs) }))
	require.Contains(t, picture, ">live: ")
	require.NotContains(t, picture, "messages 2,000")
	page := string(written(t, func(b *bytes.Buffer) error { return report.HTML(b, runs) }))
	require.Contains(t, page, ">live, 60s, ")
	require.NotContains(t, page, `<th scope="row">messages<`)
}

// pingPong is a run in which a and b take the leadership from each other, much
// faster than columns of text go by.
func pingPong(times int) verdict.Run {
	end := time.Duration(times) * sec
	a, b := node("a", end), node("b", end)
	for i := range times {
		at, term := time.Duration(i)*sec, lsn.Term(i+1)
		first, second := a, b
		if i%2 == 1 {
			first, second = b, a
		}
		first.leads(at, term, history.Forever).went(at, elector.Transition{From: elector.Candidate,
			To: elector.Leader, Reason: elector.Elected, Term: term, Leader: first.lane.Node})
		second.is(at, elector.Follower, term, first.lane.Node)
	}
	return verdict.Run{History: &history.History{
		Scenario: "ping-pong", Mode: "simulated", Duration: end, Quorum: 2, NoLease: true,
		Lanes: []history.Lane{a.lane, b.lane},
	}}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTextFitsItsWidth(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		out := text(t, report.TextOptions{Width: width, Color: true}, takeover(), steady(), hostile())
		for line := range strings.Lines(out) {
			line = strings.TrimRight(escapes.ReplaceAllString(line, ""), "\n")
			require.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
		}
	}
}

func TestColorAddsNothingButColor(t *testing.T) {
	bare := text(t, report.TextOptions{}, takeover())
	colored := text(t, report.TextOptions{Color: true}, takeover())
	require.Contains(t, colored, "\x1b[")
	require.Equal(t, bare, strings.NewReplacer("\u2713    ", "ok   ", "\u2717    ",
		"FAIL ").Replace(escapes.ReplaceAllString(colored, "")))
}

func TestTextLetsNoControlCharacterThrough(t *testing.T) {
	for _, r := range text(t, report.TextOptions{}, hostile()) {
		require.True(t, r == '\n' || r >= ' ' && r != 0x7f && r != 0x202e && r != 0x2028, "%q", r)
	}
}

// A transfer concerns another node on both sides, so the line says which.
func TestATransferSaysWhoHandedOverAndToWhom(t *testing.T) {
	a, b := node("a", 9*sec), node("b", 9*sec)
	a.leads(0, 3, 5*sec).is(4*sec, elector.Follower, 3, "").went(4*sec, elector.Transition{
		From: elector.Leader, To: elector.Follower, Reason: elector.Transferred, Term: 3, Peer: "b"})
	b.is(0, elector.Follower, 3, "a").went(5*sec, elector.Transition{
		From: elector.Follower, To: elector.Follower, Reason: elector.Transferred, Term: 3, Peer: "a"})
	out := text(t, report.TextOptions{}, verdict.Run{History: &history.History{
		Scenario: "transfer", Mode: "simulated", Duration: 9 * sec, Quorum: 2,
		Lanes: []history.Lane{a.lane, b.lane},
	}})
	require.Contains(t, out, "LEADER -> FOLLOWER TRANSFERRED term=3 to=b")
	require.Contains(t, out, "FOLLOWER TRANSFERRED term=3 by=a")
}

func TestTheGlossarySaysWhatANeedlessDemotionIs(t *testing.T) {
	require.Contains(t, text(t, report.TextOptions{}, takeover()), "needless demotions")
	page, err := os.ReadFile("../../../docs/glossary.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n- **needless demotion**: ")
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWritersErrorsComeBack(t *testing.T) {
	runs := []verdict.Run{takeover()}
	require.ErrorIs(t, report.HTML(full{}, runs), errFull)
	require.ErrorIs(t, report.JSON(full{}, runs), errFull)
	require.ErrorIs(t, report.SVG(full{}, runs), errFull)
	require.ErrorIs(t, report.Text(full{}, runs, report.TextOptions{}), errFull)
	require.ErrorIs(t, report.Summary(full{}, runs, report.TextOptions{}), errFull)
	require.ErrorIs(t, report.Distribution(full{}, nil, report.TextOptions{}), errFull)
}

func TestSummaryGolden(t *testing.T) {
	broken, stuck := steady(), steady()
	broken.History.Scenario, broken.History.Variant = "broken", ""
	broken.History.Broken = []string{"I2: a and b hold leases at 3s\ntrace"}
	stuck.History.Scenario, stuck.History.Problems = "stuck", []string{"node b did not start"}
	runs := []verdict.Run{steady(), takeover(), broken, stuck, split(), hostile()}
	golden(t, "summary.txt",
		written(t, func(b *bytes.Buffer) error { return report.Summary(b, runs, report.TextOptions{}) }))
	golden(t, "summary-held.txt", written(t, func(b *bytes.Buffer) error {
		return report.Summary(b, []verdict.Run{steady()}, report.TextOptions{Color: true})
	}))
}

func TestDistributionGolden(t *testing.T) {
	var all []history.Summary
	for i := range 200 {
		all = append(all, history.Summary{
			LeaderChanges: i / 50, Messages: 1000 * i, Availability: 1 - float64(i)/1000,
			Leaderless: time.Duration(i) * 10 * time.Millisecond,
			Failovers:  []time.Duration{time.Duration(200-i) * time.Millisecond},
		})
	}
	golden(t, "distribution.txt", written(t,
		func(b *bytes.Buffer) error { return report.Distribution(b, all, report.TextOptions{}) }))
	golden(t, "distribution-none.txt", written(t, func(b *bytes.Buffer) error {
		return report.Distribution(b, []history.Summary{{Availability: 1}}, report.TextOptions{})
	}))
}

// A failure late in a long run is among the events that are shown.
func TestTextShowsTheEventsAroundTheFirstFailure(t *testing.T) {
	run := pingPong(400)
	run.Verdicts = []verdict.Verdict{
		{Text: "leader b", Seen: "a led", At: 300 * sec, From: 170 * sec, To: 340 * sec},
		{Text: "leader a", Seen: "b led", At: 201 * sec, From: 201 * sec, To: 340 * sec},
	}
	out := text(t, report.TextOptions{}, run)
	require.Contains(t, out, "201.000s")
	require.Contains(t, out, "... 173 earlier; the json form has all\n")
	require.Contains(t, out, "... and 168 more; the json form has all\n")
	require.Contains(t, out, "seen from 201s on: b led\n")
	require.Contains(t, out, "seen at 300s: a led\n")
	run.Verdicts[1].At = 399 * sec
	run.Verdicts[0].At = 399 * sec
	require.Contains(t, text(t, report.TextOptions{}, run), "  399.000s  b", "none is after it")
}
