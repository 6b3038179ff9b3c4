package browser

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// algorithms are what the tests compare, as many as they want of them.
var algorithms = []algorithm.Algorithm{
	ours.Elector, ours.WithoutScouting, raft.WithPreVote, bully.Bully,
}

// pingPong plays the article's case with the first n algorithms.
func (b *tab) pingPong(n int) (runs []verdict.Run) {
	b.t.Helper()
	file := filepath.Join("..", "..", "testdata", "scenarios", "leader-ping-pong.yaml")
	sc, err := scenario.Load(file)
	require.NoError(b.t, err)
	for _, a := range algorithms[:n] {
		run, err := replay.Simulate(sc, replay.Options{Seed: 1, Arrows: true, Algorithm: a})
		require.NoError(b.t, err)
		run.History.Variant = a.Name
		runs = append(runs, run)
	}
	return runs
}

// perStage is an expression's value for each stage e.
func perStage[T any](b *tab, expression string) []T {
	b.t.Helper()
	return value[[]T](b, `[...document.querySelectorAll(".stage")].map(e => `+expression+`)`)
}

// media sets a preference of the reader.
func (b *tab) media(name, to string) {
	b.t.Helper()
	b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: name, Value: to}},
	}))
}

// at chooses a moment, in whole milliseconds, and waits until it is shown.
func (b *tab) at(t time.Duration) {
	b.t.Helper()
	text := fmt.Sprintf("%.3f", t.Seconds())
	b.slide(text)
	eventually(b, text+"s", `document.querySelector("#now").textContent`)
}

// watchDots counts in "moved" the stages of which a dot that is there now has moved.
const watchDots = `(stages => {
	window.moved = 0;
	for (const stage of stages) {
		const dot = stage.querySelector(".dots .dot"), at = dot.getAttribute("transform");
		new MutationObserver((_, observer) => {
			if (dot.getAttribute("transform") === at) return;
			moved++;
			observer.disconnect();
		}).observe(dot, { attributes: true });
	}
	return stages.length;
})(document.querySelectorAll(".stage"))`

func playMovesClockAndDots(b *tab) {
	for _, n := range []int{2, 3} {
		b.open(b.pingPong(n)...)
		b.at(9300 * time.Millisecond)
		require.Equal(b.t, n, value[int](b, watchDots), "heartbeats are on their way")
		b.do(chromedp.Click("#play"))
		eventually(b, true, nowShown+" > 9.3")
		eventually(b, n, "moved")
	}
}

// A message takes a millisecond here. Shortly before an election none of 30 frames moves on by
// more than a sixth of that, however slow the browser is.
func autoIsSlowAtEvents(b *tab) {
	b.open(b.pingPong(2)...)
	b.at(11_973 * time.Millisecond)
	value[bool](b, `(count => {
		const frame = () => {
			if (++count === 30) window.after30 = `+nowShown+`;
			else requestAnimationFrame(frame);
		};
		document.querySelector("#play").click();
		requestAnimationFrame(frame);
		return true;
	})(0)`)
	eventually(b, true, `window.after30 !== undefined`)
	after := value[float64](b, `window.after30`)
	require.Greater(b.t, after, 11.973)
	require.Less(b.t, after, 11.98)
}

// shown is what a stage should show of a node at a moment.
func shown(h *history.History, l *history.Lane, t time.Duration) string {
	s := l.At(t)
	name, term := string(l.Node)+" ", fmt.Sprintf(" term %d", s.Term)
	if s.Term == 0 { // the algorithm has none
		term = " "
	}
	switch {
	case s.Process != history.Up:
		return name + s.Process.String() + " "
	case len(h.ClaimantsAt(t)) > 1 && slices.Contains(h.ClaimantsAt(t), l.Node):
		return name + "rival leader" + term
	case s.Role == elector.Leader && t >= s.LeaseUntil:
		return name + "lease over" + term
	case s.Role == elector.Leader:
		return name + "leader" + term
	case s.Role == elector.Candidate:
		return name + "candidate" + term
	case s.Leader == "":
		return name + "no leader" + term
	}
	return name + "follower" + term
}

const members = `[...e.querySelectorAll(".member")].map(m =>
	[...m.querySelectorAll("text")].map(t => t.textContent).join(" "))`

func sliderMovesAllStages(b *tab) {
	runs := append(b.pingPong(4), b.simulated())
	b.open(runs...)
	for _, at := range []time.Duration{0, 10 * sec, 11_976 * time.Millisecond,
		22_500 * time.Millisecond, 46 * sec, 51 * sec, 59_999 * time.Millisecond} {
		b.at(at)
		var want [][]string
		for _, r := range runs {
			var nodes []string
			for i := range r.History.Lanes {
				nodes = append(nodes, shown(r.History, &r.History.Lanes[i], at))
			}
			want = append(want, nodes)
		}
		require.Equal(b.t, want, perStage[[]string](b, members), "%s", at)
	}
}

func leadersAreNamed(b *tab) {
	runs := b.pingPong(2)
	b.open(runs...)
	for _, r := range runs[1].History.Reigns(0, 20*sec) {
		at := r.From.Truncate(time.Millisecond) + time.Millisecond
		if at >= r.To {
			continue
		}
		who := string(r.Leader) + " leads"
		if r.Leader == "" {
			who = "nobody leads"
		}
		if len(runs[1].History.ClaimantsAt(at)) == 2 {
			who = "two leaders: a, b"
		}
		b.at(at)
		require.Equal(b.t, []string{"a leads", who},
			perStage[string](b, `e.querySelector(".reign").textContent`), "%s", at)
	}
	b.at(10 * sec)
	require.Equal(b.t, []string{"10.000cut a-b", "10.000cut a-b"},
		perStage[string](b, `e.querySelector(".events .fresh").textContent`))
	const leases = `getComputedStyle(e.querySelector("[data-state=leader] .lease")).stroke !== "none"`
	require.Equal(b.t, []bool{true, false}, perStage[bool](b, leases), "one of them has leases")
}

func cutAndDownAreDrawn(b *tab) {
	b.open(b.simulated(), b.simulated("network.delay=20ms"))
	const cut = `e.querySelectorAll(".links .cut").length`
	for at, want := range map[time.Duration]int{19 * sec: 0, 21 * sec: 8, 41 * sec: 0} {
		b.at(at)
		require.Equal(b.t, []int{want, want}, perStage[int](b, cut), "directions cut at %s", at)
	}
	b.at(46 * sec)
	const looks = `[...e.querySelectorAll(".member")].map(m => m.dataset.state).join(" ")`
	require.Equal(b.t, "follower paused leader follower follower", perStage[string](b, looks)[0])
	b.at(51 * sec)
	require.Equal(b.t, "follower follower leader down follower", perStage[string](b, looks)[0])
	require.Equal(b.t, []int{8, 8}, perStage[int](b, `e.querySelectorAll(".links .off").length`))
}

func lostMessagesStopMidway(b *tab) {
	b.open(b.pingPong(2)...)
	b.do(chromedp.SetValue("#speed", "2"))
	const lost = `e.querySelectorAll(".dot.lost").length`
	b.at(9 * sec)
	require.Equal(b.t, []int{0, 0}, perStage[int](b, lost))
	b.at(10500 * time.Millisecond)
	require.Equal(b.t, []int{1, 1}, perStage[int](b, lost), "a's heartbeat to b")
	b.pointAt(".dots .lost")
	eventually(b, true, `/^LeaderHeartbeat .*\na to b\nsent 10\.\d+s, lost$/.test(
		document.querySelector("#tip").textContent)`)
	b.shoot("lost.png")
}

func kindsHaveLooks(b *tab) {
	runs := b.pingPong(4)
	b.open(runs...)
	looks := map[string]string{}
	for i, legend := range perStage[[][]string](b, `[...e.querySelectorAll(".kinds li")].map(li =>
			[li.textContent, li.querySelector("path").getAttribute("class")])`) {
		var names []string
		used := map[string]bool{}
		for _, entry := range legend {
			name, look := entry[0], entry[1]
			require.Contains(b.t, []string{"", look}, looks[name], "the same in all runs")
			require.False(b.t, used[look], "%s is told apart", name)
			looks[name], used[look], names = look, true, append(names, name)
		}
		var want []string
		for _, a := range runs[i].History.Arrows {
			if !slices.Contains(want, a.Kind) {
				want = append(want, a.Kind)
			}
		}
		require.ElementsMatch(b.t, want, names)
	}
}

func stagesWithoutAMouse(b *tab) {
	b.open(b.pingPong(2)...)
	press := func(key string) { b.do(chromedp.KeyEvent(key)) }
	for _, id := range []string{"play", "speed", "previous", "next", "out", "in", "fit", "messages",
		"slider"} {
		press(kb.Tab)
		require.Equal(b.t, id+" solid", value[string](b,
			`(e => e.id + " " + getComputedStyle(e).outlineStyle)(document.activeElement)`))
	}
	for key, want := range map[string]float64{kb.Home: 0, kb.End: 120} {
		press(key)
		eventually(b, want, nowShown)
	}
	press(kb.Home)
	press(kb.ArrowRight)
	eventually(b, 10.0, nowShown)
	require.Equal(b.t, "10.000s", value[string](b, `document.querySelector("#slider").ariaValueText`))
	press(" ")
	eventually(b, true, nowShown+" > 10")
	require.Equal(b.t, []string{"off", "off"},
		perStage[string](b, `e.querySelector(".reign").ariaLive`), "a reader would not keep up")
	press(" ")
	eventually(b, "Play", `document.querySelector("#play").textContent`)
}

func stagesWithoutMotion(b *tab) {
	b.open(b.pingPong(2)...)
	b.media("prefers-reduced-motion", "reduce")
	b.at(9 * sec)
	b.do(chromedp.Click("#play"))
	eventually(b, false, nowShown+" === 9")
	require.Equal(b.t, 10.0, value[float64](b, nowShown), "from one event to the next")
}

func stagesFitTheScreen(b *tab) {
	const tops = `Math.round(e.getBoundingClientRect().top)`
	for n := 2; n <= len(algorithms); n++ {
		b.open(b.pingPong(n)...)
		b.do(chromedp.SetValue("#speed", "2"))
		b.at(12_300 * time.Millisecond)
		for width, rows := range map[int64]int{1280: 1, 400: 2} {
			b.do(chromedp.EmulateViewport(width, 900))
			eventually(b, true, fmt.Sprintf(`document.documentElement.clientWidth === %d &&
				document.documentElement.scrollWidth <= %[1]d`, width))
			shown := slices.DeleteFunc(perStage[int](b, tops), func(top int) bool { return top == 0 })
			require.Len(b.t, slices.Compact(shown), rows)
			b.shoot(fmt.Sprintf("stages-%d-%d.png", n, width))
		}
	}
}

// stagesOfOddRuns shows runs without messages, without nodes, with many nodes, and with one
// that asks a store.
func stagesOfOddRuns(b *tab) {
	empty := verdict.Run{History: &history.History{Scenario: "failed", Duration: 5 * sec}}
	one := handMade(10*sec, []history.Span{leads(0, 11*sec, 1, "a")}, nil)
	one.History.Lanes = one.History.Lanes[:1]
	one.History.Arrows = []history.Arrow{{From: "a", To: "store", Sent: 4 * sec, Received: 6 * sec,
		Kind: "Renew", Text: "Renew until=9s"}}
	many := handMade(10*sec, nil, nil)
	for i := range 30 {
		many.History.Lanes = append(many.History.Lanes, history.Lane{
			Node: history.NodeID(fmt.Sprintf("a-long-name-%d", i)), Voter: true,
			Spans: []history.Span{follows(0, 11*sec, 1, "a")},
		})
	}
	b.open(one, empty, many, b.simulated())
	b.at(5 * sec)
	require.Equal(b.t, []string{"Renew", "", ""},
		perStage[string](b, `e.querySelector(".kinds").textContent`)[:3])
	require.Equal(b.t, 1, perStage[int](b, `e.querySelectorAll(".dots .dot").length`)[0])
	require.Equal(b.t, []int{2, 0, 32, 5}, perStage[int](b, `e.querySelectorAll(".member").length`))
	b.shoot("odd.png")
}
