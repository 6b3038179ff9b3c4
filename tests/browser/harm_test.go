package browser

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// partition plays the leader's minority: ours, Raft and the bully, which has no terms.
func (b *tab) partition() (runs []verdict.Run) {
	b.t.Helper()
	sc, err := scenario.Load(filepath.Join("..", "..", "testdata", "scenarios",
		"minority-partition-with-leader.yaml"))
	require.NoError(b.t, err)
	for _, a := range []replay.Options{{Algorithm: ours.Elector}, {Algorithm: raft.Basic},
		{Algorithm: bully.Bully}} {
		a.Seed, a.Arrows = 1, true
		run, err := replay.Simulate(sc, a)
		require.NoError(b.t, err)
		run.History.Variant = a.Algorithm.Name
		runs = append(runs, run)
	}
	return runs
}

// Two leaders at once are red, and marked as well: on the stage, in its caption, in the lanes,
// in the list of what happened. Before and after they are not.
func twoLeadersAreRed(b *tab) {
	runs := b.partition()
	b.open(runs...)
	const (
		caption = `(r => [r.value, getComputedStyle(r).color,
			getComputedStyle(r, "::before").content].join(" "))(e.querySelector(".reign"))`
		disks = `[...e.querySelectorAll(".member")].filter(m =>
			getComputedStyle(m.children[1]).fill.includes("bmq-rival")).map(m =>
				m.textContent.split("rival leader")[0])`
		bad = `[...e.querySelectorAll(".events .bad span")].map(e => e.textContent).join()`
		red = ` rgb(196, 50, 31) "! "`
	)
	var says []string
	names := [][]string{{}, nil, nil}
	for i, r := range runs {
		says = append(says, "")
		if claim := r.History.ClaimantsAt(30 * sec); i > 0 {
			require.Len(b.t, claim, 2)
			names[i] = []string{string(claim[0]), string(claim[1])}
			says[i] = "two leaders: " + names[i][0] + ", " + names[i][1]
		}
	}
	b.at(30 * sec)
	require.Equal(b.t, []string{says[1] + red, says[2] + red}, perStage[string](b, caption)[1:])
	require.Equal(b.t, names, perStage[[]string](b, disks))
	require.Equal(b.t, says, perStage[string](b, bad))
	for _, t := range []time.Duration{5 * sec, 80 * sec} {
		b.at(t)
		require.NotContains(b.t, fmt.Sprint(perStage[string](b, caption)), "two leaders")
		require.Equal(b.t, [][]string{{}, {}, {}}, perStage[[]string](b, disks))
	}
	require.Equal(b.t, names, value[[][]string](b,
		`[...document.querySelectorAll("#lanes .run")].map(g => [...g.querySelectorAll(".lane")].filter(l =>
			[...l.querySelectorAll(".rival:not([display])")].some(r => +r.getAttribute("width") > 400 &&
				getComputedStyle(r).fill.includes("bmq-rival"))).map(l => l.dataset.node))`))
	require.Equal(b.t, says[1:], value[[]string](b,
		`[...document.querySelectorAll("#lanes .reigns text:not([display])")].map(e =>
			e.textContent).filter(text => text.startsWith("two"))`))
	require.Equal(b.t, "0.000the run begins: a leads", perStage[string](b,
		`e.querySelector(".events li").textContent`)[2])
	require.Contains(b.t, value[string](b, `document.querySelector("#about").textContent`),
		"What happens: 10s partition a b | c d e; 60s heal all.")
	require.Equal(b.t, []bool{true, false, false}, value[[]bool](b, `[...document.querySelectorAll(
		"#expected > div")].map(e => e.textContent.includes("The old leader's lease ends"))`))
	b.shoot("two-leaders.png")
}

// The figures tell the worst harm first, and the worst of each row is marked.
func figuresByHarm(b *tab) {
	b.open(b.partition()...)
	require.Equal(b.t, []string{"two leaders", "needless demotions", "time without leader",
		"availability", "leader changes", "elections", "messages"}, value[[]string](b,
		`[...document.querySelectorAll("#figures tbody th")].map(e => e.textContent)`))
	const marked = `[...document.querySelectorAll("#figures tbody tr")].map(row =>
		[...row.querySelectorAll("td")].map(cell => [getComputedStyle(cell).color,
			getComputedStyle(cell, "::after").content].join(" ") === 'rgb(196, 50, 31) " !"'))`
	rows := value[[][]bool](b, marked)
	require.Equal(b.t, []bool{false, true, true}, rows[0], "any time with two leaders")
	for i, row := range rows {
		require.False(b.t, i > 0 && !slices.Contains(row, false), "not all are the worst: %d", i)
	}
	require.Equal(b.t, []bool{false, true, false}, rows[6], "Raft sends the most messages")
}

// A narrow screen has room for two runs, which the reader chooses.
func narrowScreenHasTwoRuns(b *tab) {
	height := map[int]int{}
	for _, n := range []int{2, 4} {
		b.open(b.pingPong(n)...)
		b.do(chromedp.EmulateViewport(400, 900))
		eventually(b, 2, `[...document.querySelectorAll(".stage")].filter(e => e.checkVisibility()).length`)
		height[n] = value[int](b, `document.documentElement.scrollHeight`)
	}
	require.Less(b.t, height[4], height[2]+400, "more runs take no room")
	const shown = `["#stages h2", "#lanes .variant", "#figures thead th", "#expected h3"].map(part =>
		[...document.querySelectorAll(part)].filter(e => e.getBoundingClientRect().width).map(e =>
			e.textContent.split(":")[0]).join(" and ")).filter((e, i, all) => all.indexOf(e) === i).join()`
	choose := func(which int, name string) {
		value[bool](b, `(e => { e.value = "`+name+`"; return e.dispatchEvent(new Event("change")); })(
			document.querySelectorAll("#picker select")[`+string(rune('0'+which))+`])`)
	}
	eventually(b, "bmqelect and bmqelect-without-scouting", shown)
	choose(1, "bully")
	eventually(b, "bmqelect and bully", shown)
	choose(0, "bully")
	eventually(b, "bmqelect and bully", shown, func() {})
	b.shoot("picker.png")
	b.do(chromedp.EmulateViewport(1280, 900))
	eventually(b, 4, `[...document.querySelectorAll(".stage")].filter(e => e.checkVisibility()).length`)
	require.False(b.t, value[bool](b, `document.querySelector("#picker").checkVisibility()`))
}
