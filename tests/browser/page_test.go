package browser

import (
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

const sec = time.Second

// takeover has one of everything: leader a is cut off, another node takes over, one
// is paused, one crashes, one watches, and an expectation fails.
const takeover = `
name: takeover
about: the leader is cut off from all
source: a test
nodes: {a: , b: {candidate: false}, c: , d: {candidate: false}, o: {observer: true}}
begin: {leader: a, term: 10}
duration: 60s
timeline:
  - {at: 20s, isolate: [a]}
  - {at: 40s, heal: all}
  - {at: 45s, pause: [b]}
  - {at: 47s, resume: [b]}
  - {at: 50s, crash: [d]}
  - {at: 52s, transfer: {to: b}}
  - {at: 55s, restart: [d]}
expect:
  - {to: 20s, leader: a, term: 10}
  - {at: 30s, leader: a}
`

func (b *tab) simulated(set ...string) verdict.Run {
	b.t.Helper()
	sc, err := scenario.Parse("takeover.yaml", []byte(takeover), set...)
	require.NoError(b.t, err)
	run, err := replay.Simulate(sc, replay.Options{Seed: 1, Arrows: true})
	require.NoError(b.t, err)
	require.Empty(b.t, run.History.Problems)
	return run
}

// handMade is the history of two nodes that change at these times.
func handMade(end time.Duration, a, b []history.Span) verdict.Run {
	h := &history.History{Scenario: "by hand", Mode: "simulated", Duration: end, Quorum: 2,
		NoLease: true, Lanes: []history.Lane{
			{Node: "a", Voter: true, Candidate: true, Spans: a}, {Node: "b", Voter: true, Candidate: true,
				Spans: b},
		}}
	return verdict.Run{History: h}
}

func follows(from, to time.Duration, term lsn.Term, leader history.NodeID) history.Span {
	return history.Span{From: from, To: to, Process: history.Up, Role: elector.Follower, Term: term,
		Leader: leader}
}

func leads(from, to time.Duration, term lsn.Term, self history.NodeID) history.Span {
	return history.Span{
		From: from, To: to, Process: history.Up, Role: elector.Leader, Term: term, Leader: self,
		LeaseUntil: history.Forever,
	}
}

// laneA is the middle of lane a.
const laneA = 100

// shownBoxes are the boxes of lane a on screen, as class, x and width.
const shownBoxes = `[...document.querySelectorAll("#lanes [data-node=a] rect:not([display])")]
	.map(e => [e.classList[0], +e.getAttribute("x"), +e.getAttribute("width")])
	.sort((a, b) => a[1] - b[1])`

func lanesMove(b *tab) {
	b.open(b.simulated())
	b.do(chromedp.ScrollIntoView("#lanes"))
	b.shoot("lanes.png")
	type boxes = [][]any
	whole := value[boxes](b, shownBoxes)
	require.Len(b.t, whole, 3, "leader, without a leader, follower")
	require.Equal(b.t, "leader", whole[0][0])
	width := value[float64](b, `document.querySelector("#lanes").clientWidth`)
	require.InDelta(b.t, width-8, whole[2][1].(float64)+whole[2][2].(float64), 0.1,
		"the end is at the edge")
	b.slide("5")
	b.do(chromedp.Click("#in"), chromedp.Click("#in"))
	eventually(b, 1, shownBoxes+".length")
	near := value[boxes](b, shownBoxes)
	require.Equal(b.t, whole[0][1], near[0][1])
	require.InDelta(b.t, width-8-whole[0][1].(float64), near[0][2], 0.1,
		"a leads all of what is on screen")
	require.Equal(b.t, "none", value[string](b,
		`getComputedStyle(document.querySelector("#lanes [data-node=a] .alone")).display`))
}

func labelsWhereThereIsRoom(b *tab) {
	b.open(handMade(100*sec, []history.Span{leads(0, 50*sec, 1, "a"), follows(50*sec, 51*sec, 2, ""),
		follows(51*sec, 101*sec, 3, "b")},
		[]history.Span{follows(0, 50*sec, 1, "a"), leads(50*sec, 101*sec, 3, "b")}))
	const labels = `[...document.querySelectorAll("#lanes [data-node=a] text:not([display])")].map(e => e.textContent).join()`
	eventually(b, "term 1,3", labels)
	b.slide("50.5")
	b.do(chromedp.Click("#in"), chromedp.Click("#in"))
	eventually(b, "term 1,2,3", labels)
	b.do(chromedp.Click("#fit"))
	eventually(b, "term 1,3", labels)
}

func hoverTells(b *tab) {
	b.open(b.simulated())
	b.do(chromedp.ScrollIntoView("#lanes"))
	const tip, heading = `document.querySelector("#tip").textContent`,
		`document.querySelector("#tip").textContent.split("\n")[0]`
	b.pointAt("#lanes [data-node=a] .leader")
	eventually(b, "a: leader", heading)
	require.Contains(b.t, value[string](b, tip), "lease to 2")
	b.pointAt("#lanes .nobody")
	eventually(b, "nobody leads", heading)
	b.pointAt("#lanes .cut")
	b.shoot("hover.png")
	eventually(b, "cut: a-*", heading)
	b.pointAt("#lanes .volume")
	eventually(b, true, heading+`.endsWith(" messages")`)
	b.point(10, laneA)
	eventually(b, true, `document.querySelector("#tip").hidden`)
}

func messagesOnZoom(b *tab) {
	b.open(b.simulated(), b.simulated("scouting=false"))
	const arrows = `document.querySelectorAll("#lanes .arrow").length`
	eventually(b, 0, arrows)
	b.slide("10.02")
	for range 6 {
		b.do(chromedp.Click("#in"))
	}
	eventually(b, true, arrows+" > 0")
	b.shoot("arrows.png")
	b.do(chromedp.ScrollIntoView("#lanes"))
	// An arrow is thin, and its place is read before a frame that may move it: so the mouse
	// moves again, as a person's does.
	eventually(b, true,
		`/ to .*\nsent .*, took .* ms$/.test(document.querySelector("#tip").textContent)`,
		func() { b.pointAt("#lanes .arrow.k0 .hit") })
	b.do(chromedp.Click("#messages"))
	eventually(b, 0, arrows)
}

// linkTo is what a stage shows of the direction from one node to another.
func linkTo(from, to string) string {
	return fmt.Sprintf(`document.querySelector(".links [data-from=%s][data-to=%s]")
		.getAttribute("class")`, from, to)
}

func sliderMovesLinks(b *tab) {
	b.open(b.simulated())
	eventually(b, "follows", linkTo("a", "c"))
	b.slide("30")
	eventually(b, "cut", linkTo("a", "c"))
	b.slide("46")
	eventually(b, "hears", linkTo("a", "c"))
	require.Equal(b.t, "off", value[string](b, linkTo("b", "c")), "b is paused")
	require.Equal(b.t, "follows", value[string](b, linkTo("c", "a")))
	require.Equal(b.t, "pause b", value[string](b,
		`document.querySelector(".events [aria-current] span").textContent`))
	require.Equal(b.t, "a: follower, b: paused, c: leader, d: follower, o: follower",
		value[string](b, `document.querySelector(".stage > svg").ariaLabel`))
}

const nowShown = `parseFloat(document.querySelector("#now").textContent)`

func playGoesOnAndEnds(b *tab) {
	b.open(b.simulated())
	b.do(chromedp.SetValue("#speed", "60"), chromedp.Click("#play"))
	eventually(b, "Pause", `document.querySelector("#play").textContent`)
	eventually(b, true, nowShown+" > 5")
	eventually(b, 60.0, nowShown)
	eventually(b, "Play", `document.querySelector("#play").textContent`)
}

func keys(b *tab) {
	b.open(b.simulated())
	key := func(k string) { b.do(chromedp.KeyEvent(k)) }
	key(kb.ArrowRight)
	eventually(b, 20.0, nowShown)
	key(kb.ArrowRight)
	eventually(b, true, nowShown+" > 20 && "+nowShown+" < 23")
	key(kb.ArrowLeft)
	eventually(b, 20.0, nowShown)
	key(" ")
	eventually(b, "Pause", `document.querySelector("#play").textContent`)
	key(" ")
	eventually(b, "Play", `document.querySelector("#play").textContent`)
}

func verdictsLeadThere(b *tab) {
	b.open(b.simulated())
	b.do(chromedp.Click("#expected .failed button"))
	eventually(b, 30.0, nowShown)
	b.do(chromedp.ScrollIntoView("#title"), chromedp.Click(".events li:last-child button"))
	eventually(b, true, nowShown+" > 55")
	require.Equal(b.t, "1 did not hold",
		value[string](b, `document.querySelector("#verdict").textContent`))
}

func namesAreText(b *tab) {
	const evil = "<script>alert(1)</script>"
	r := handMade(10*sec, []history.Span{leads(0, 11*sec, 1, evil)},
		[]history.Span{follows(0, 11*sec, 1, evil)})
	r.History.Scenario, r.About, r.History.Lanes[0].Node = evil, "</title></style>", evil
	r.History.Marks = []history.Mark{{At: sec, Text: evil, Note: "<!--"}}
	r.History.Arrows = []history.Arrow{{From: evil, To: "b", Sent: sec, Received: 2 * sec,
		Kind: evil, Text: "</script>" + evil}}
	r.History.Broken = []string{evil}
	b.open(r, b.simulated())
	require.Equal(b.t, evil, value[string](b, `document.querySelector("h1").textContent`))
	require.Equal(b.t, evil,
		value[string](b, `document.querySelector(".member").dataset.tip.split(": ")[0]`))
	require.Equal(b.t, []string{evil}, value[[]string](b,
		`[...document.querySelectorAll(".kinds")[0].children].map(e => e.textContent)`))
	require.Equal(b.t, 2, value[int](b, `document.scripts.length`))
	require.Zero(b.t, value[int](b, `document.images.length`))
}

// The page must not be wider than the screen, on any. Marks of the timeline have their names in
// a few rows, where no name covers another; on a narrow screen, as many as find room.
func pageFitsScreen(b *tab) {
	with, without := b.simulated(), b.simulated("scouting=false")
	with.History.Variant, without.History.Variant = "scouting=true", "scouting=false"
	b.open(with, without)
	for _, scheme := range []string{"light", "dark"} {
		for width, names := range map[int64]int{1280: 14, 400: 10} {
			b.media("prefers-color-scheme", scheme)
			b.do(chromedp.EmulateViewport(width, 900))
			eventually(b, true, fmt.Sprintf(`document.documentElement.clientWidth === %d &&
				document.documentElement.scrollWidth <= %[1]d &&
				document.querySelector("#lanes").viewBox.baseVal.width ===
					document.querySelector("#lanes").clientWidth`, width))
			require.True(b.t, value[bool](b, `(e => e.scrollWidth <= e.clientWidth)(
				document.querySelector("#figures").parentElement)`), "figures")
			require.Equal(b.t, names, value[int](b, marksShown+".length"))
			require.LessOrEqual(b.t, value[int](b, rowsOfMarks), 4)
			require.Empty(b.t, value[[]string](b, marksThatMeet))
			b.shoot(fmt.Sprintf("%s-%d.png", scheme, width))
		}
	}
}

const (
	rowsOfMarks = `new Set([...document.querySelectorAll(".run")[0]
		.querySelectorAll(".marktext:not([display])")].map(e => e.getAttribute("y"))).size`
	marksShown    = `[...document.querySelectorAll("#lanes .marktext:not([display])")]`
	marksThatMeet = `(boxes => boxes.filter((a, i) => boxes.some((b, j) => i !== j &&
		a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom))
		.map(a => a.name))(` + marksShown + `.map(e => {
			const { left, right, top, bottom } = e.getBoundingClientRect();
			return { left, right, top, bottom, name: e.textContent };
		}))`
)

// The lines of marks run behind what has a name in the lanes, and not through those of nodes.
func linesAreBehind(b *tab) {
	b.open(b.simulated())
	require.True(b.t, value[bool](b, `[...document.querySelectorAll("#lanes .mark")].every(line =>
		+line.getAttribute("y2") <= +document.querySelector("#lanes .lane rect").getAttribute("y"))`))
	require.True(b.t, value[bool](b, `[...document.querySelectorAll("#lanes .row")].every(row =>
		document.querySelector("#lanes .marks").compareDocumentPosition(row) &
			Node.DOCUMENT_POSITION_FOLLOWING)`))
}

// What is compared is not judged: each variant says for itself what did not hold.
func comparedIsNotJudged(b *tab) {
	b.open(b.simulated(), b.simulated("scouting=false"))
	require.Equal(b.t, "2 variants compared",
		value[string](b, `document.querySelector("#verdict").textContent`))
	require.Equal(b.t, []string{"as written: 1 did not hold", "as written: 1 did not hold"},
		value[[]string](b, `[...document.querySelectorAll("#expected h3")].map(e => e.textContent)`))
}

// requireOnScreen clicks at both edges of the lanes: that chooses the first and
// the last moment on screen.
func (b *tab) requireOnScreen(from, to float64) {
	b.t.Helper()
	left := value[float64](b, `+document.querySelector("#lanes").dataset.left`)
	width := value[float64](b, `document.querySelector("#lanes").clientWidth`)
	for x, want := range map[float64]float64{left + 1: from, width - 9: to} {
		b.drag(x, x, laneA)
		require.EventuallyWithT(b.t, func(c *assert.CollectT) {
			now, err := evaluate[float64](b, nowShown)
			require.NoError(c, err)
			require.InDelta(c, want, now, 1)
		}, testkit.Limit(patience), 20*time.Millisecond)
	}
}

func wheelAndDrag(b *tab) {
	b.open(b.simulated())
	b.do(chromedp.ScrollIntoView("#lanes"))
	b.requireOnScreen(0, 60)
	left := value[float64](b, `+document.querySelector("#lanes").dataset.left`)
	width := value[float64](b, `document.querySelector("#lanes").clientWidth`) - 8 - left
	b.wheel(left+width/2, laneA, -100)
	b.requireOnScreen(10, 50)
	b.drag(left+width/2, left+width/2+width/8, laneA)
	b.requireOnScreen(5, 45)
	b.do(chromedp.Click("#fit"))
	b.requireOnScreen(0, 60)
}

func overviewMovesTheView(b *tab) {
	b.open(b.simulated())
	b.do(chromedp.Click("#in"))
	eventually(b, 500.0,
		`Math.round(document.querySelector("#overview .shade").getAttribute("width"))`)
	b.click("#overview")
	eventually(b, 250.0, `Math.round(document.querySelector("#overview .shade").getAttribute("x"))`)
	b.do(chromedp.ScrollIntoView("#lanes"))
	b.requireOnScreen(15, 45)
}

// longRun opens a run at the limit of what a history keeps, in which a and b take
// the leadership from each other all the time.
func longRun(b *tab) {
	const times = 5_000
	spans := map[bool][]history.Span{}
	for i := range times {
		at, term, first := time.Duration(i)*sec, lsn.Term(i+1), i%2 == 0
		leader := map[bool]history.NodeID{true: "a", false: "b"}[first]
		spans[first] = append(spans[first], leads(at, at+sec, term, leader))
		spans[!first] = append(spans[!first], follows(at, at+sec, term, leader))
	}
	r := handMade(times*sec, spans[true], spans[false])
	for i := range history.MaxArrows {
		at := time.Duration(i) * 100 * time.Millisecond
		r.History.Arrows = append(r.History.Arrows, history.Arrow{
			From: "a", To: "b", Sent: at, Received: at + sec, Kind: "LeaderHeartbeat",
			Text: "LeaderHeartbeat",
		})
	}
	b.open(r)
	b.slide("3000")
	eventually(b, "a leads", `document.querySelector("output.reign").value`)
	require.Zero(b.t, value[int](b, `document.querySelectorAll("#lanes .arrow").length`))
	b.do(chromedp.Click("#in"))
	eventually(b, 500.0, `+document.querySelector("#overview .shade").getAttribute("width")`)
}
