package report_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// talkative is takeover with the messages that nodes of a cluster exchange.
func talkative() report.Run {
	r := takeover()
	r.History.Arrows, r.History.Sent = nil, nil
	for at := time.Duration(0); at < 60*sec; at += 500 * time.Millisecond {
		leader := r.History.LeaderAt(at)
		for _, l := range r.History.Lanes {
			if leader != "" && l.Node != leader {
				r.History.Arrows = append(r.History.Arrows, heartbeat(r.History, leader, l.Node, at))
			}
		}
		r.History.Sent = append(r.History.Sent, history.Bucket{At: at, Count: 4 + int(at/sec)%7})
	}
	return r
}

func heartbeat(h *history.History, from, to history.NodeID, at time.Duration) history.Arrow {
	a := history.Arrow{From: from, To: to, Sent: at, Received: at + 40*time.Millisecond, Kind: elector.LeaderHeartbeat, Text: "LeaderHeartbeat term=10 to " + string(to)}
	for _, c := range h.Cuts {
		if c.From == from && c.To == to && c.Start <= at && at < c.End {
			a.Received = history.Forever
		}
	}
	return a
}

// pixels are the colors of a stretch of the first run's canvas, from x to the
// right. They are read from a copy: reading a canvas that is drawn to is slow,
// and Chromium warns of it.
const pixels = `((x, y, width) => {
	const c = document.querySelector(".lanes canvas"), copy = document.createElement("canvas"), colors = [];
	copy.width = width;
	copy.height = 1;
	const g = copy.getContext("2d", { willReadFrequently: true });
	g.drawImage(c, -x, -y);
	const d = g.getImageData(0, 0, width, 1).data;
	for (let i = 0; i < d.length; i += 4) colors.push([...d.slice(i, i + 3)].join());
	return colors;
})`

// Places on the canvas of takeover at a width of 1280: the middles of lane a and
// of the row of leaders.
const (
	laneA   = 18 + 18 + 19 + 20 + 11
	leading = 18 + 18 + 19 + 7
)

func lanesAreDrawn(b *tab) {
	b.open(talkative())
	leader, follower := "23,121,59", "195,212,234"
	eventually(b, leader, pixels+fmt.Sprintf("(300, %d, 1)[0]", laneA))
	require.Equal(b.t, follower, value[string](b, pixels+fmt.Sprintf("(1150, %d, 1)[0]", laneA+5)))
	require.Equal(b.t, "214,69,69", value[string](b, pixels+fmt.Sprintf("(580, %d, 1)[0]", leading+5)), "nobody leads from 22s to 26s")
}

func hoverTells(b *tab) {
	b.open(talkative())
	b.do(chromedp.ScrollIntoView(".lanes canvas"))
	b.point(300, laneA)
	eventually(b, "a: leader", `document.querySelector("#tip b")?.textContent`)
	require.Contains(b.t, value[string](b, `document.querySelector("#tip").textContent`), "lease to 22s")
	b.point(580, leading)
	eventually(b, "nobody leads", `document.querySelector("#tip b").textContent`)
	b.point(700, 18+18+5)
	b.shoot("hover.png")
	eventually(b, "cut: a-*", `document.querySelector("#tip b").textContent`)
	b.point(10, laneA)
	eventually(b, true, `document.querySelector("#tip").hidden`)
}

func messagesOnZoom(b *tab) {
	b.open(talkative(), steady())
	eventually(b, true, `document.querySelector("#zoomhint").checkVisibility()`)
	// Between lane a and the next one there is nothing but messages.
	arrows := pixels + fmt.Sprintf(`(200, %d, 900).includes("107,124,147")`, laneA+13)
	eventually(b, false, arrows)
	b.slide("10.02")
	for range 9 {
		b.do(chromedp.Click("#in"))
	}
	eventually(b, true, arrows)
	require.False(b.t, value[bool](b, `document.querySelector("#zoomhint").checkVisibility()`))
	b.point(200+float64(value[int](b, strings.Replace(arrows, "includes", "indexOf", 1))), laneA+13)
	eventually(b, true, `document.querySelector("#tip").textContent.startsWith("LeaderHeartbeat term=10 to ")`)
	require.Contains(b.t, value[string](b, `document.querySelector("#tip").textContent`), "sent 10s, took 40.0 ms")
	b.do(chromedp.Click("#out"), chromedp.Click("#out"), chromedp.Click("#out"), chromedp.Click("#out"))
	b.shoot("arrows.png")
	b.do(chromedp.Click("#messages"))
	eventually(b, false, arrows)
}

const linkAtoC = `document.querySelector('.matrix td[data-from=a][data-to=c]').dataset.state`

func sliderMovesMatrix(b *tab) {
	b.open(talkative())
	eventually(b, "follows", linkAtoC)
	b.slide("30")
	eventually(b, "cut", linkAtoC)
	b.slide("49")
	eventually(b, "hears", linkAtoC)
	require.Equal(b.t, "off", value[string](b, `document.querySelector('.matrix td[data-from=b][data-to=c]').dataset.state`), "b is paused")
	require.Equal(b.t, "follows", value[string](b, `document.querySelector('.matrix td[data-from=c][data-to=a]').dataset.state`))
	require.Equal(b.t, "pause b", value[string](b, `[...document.querySelectorAll(".events li")].filter(l => l.textContent.includes("pause b")).map(l => l.querySelector("span").textContent)[0]`))
	require.Equal(b.t, "crash d", value[string](b, `document.querySelector(".events [aria-current] span").textContent`))
}

const nowShown = `parseFloat(document.querySelector("#now").textContent)`

func playGoesOnAndEnds(b *tab) {
	b.open(talkative())
	b.do(chromedp.SetValue("#speed", "60"), chromedp.Click("#play"))
	eventually(b, "Pause", `document.querySelector("#play").textContent`)
	eventually(b, true, nowShown+" > 5")
	eventually(b, 60.0, nowShown)
	eventually(b, "Play", `document.querySelector("#play").textContent`)
}

func keys(b *tab) {
	b.open(talkative())
	key := func(k string) { b.do(chromedp.KeyEvent(k)) }
	key("n")
	eventually(b, 20.0, nowShown)
	key("n")
	eventually(b, 23.0, nowShown)
	key("p")
	eventually(b, 20.0, nowShown)
	key(" ")
	eventually(b, "Pause", `document.querySelector("#play").textContent`)
	key(" ")
	eventually(b, "Play", `document.querySelector("#play").textContent`)
}

func verdictsLeadThere(b *tab) {
	b.open(talkative())
	b.do(chromedp.Click("#expected .failed button"))
	eventually(b, 26.0, nowShown)
	b.do(chromedp.Click(".events li:last-child button"))
	eventually(b, 55.0, nowShown)
	require.Equal(b.t, "1 did not hold", value[string](b, `document.querySelector("#verdict").textContent`))
}

func namesAreText(b *tab) {
	b.open(hostile(), steady())
	require.Equal(b.t, "<script>alert(1)</script>", value[string](b, `document.querySelector("h1").textContent`))
	require.Equal(b.t, 2, value[int](b, `document.scripts.length`))
	require.Zero(b.t, value[int](b, `document.images.length`))
	require.Equal(b.t, 2, value[int](b, `document.querySelectorAll(".lanes canvas").length`))
}

// The page must not be wider than the screen, on any.
func pageFitsScreen(b *tab) {
	b.open(talkative(), steady())
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 480} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			b.do(call(emulation.SetEmulatedMedia, media), chromedp.EmulateViewport(width, 900))
			eventually(b, true, fmt.Sprintf("document.documentElement.clientWidth === %d && document.documentElement.scrollWidth <= %[1]d", width))
			b.shoot(fmt.Sprintf("%s-%d.png", scheme, width))
		}
	}
}

// requireOnScreen clicks at both edges of the lanes: that chooses the first and
// the last moment on screen.
func (b *tab) requireOnScreen(from, to float64) {
	b.t.Helper()
	for x, want := range map[float64]float64{123: from, 1201: to} {
		b.drag(x, x, laneA)
		require.EventuallyWithT(b.t, func(c *assert.CollectT) {
			now, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](nowShown))
			require.NoError(c, err)
			require.InDelta(c, want, now, 1)
		}, 20*time.Second, 20*time.Millisecond)
	}
}

func wheelAndDrag(b *tab) {
	b.open(takeover())
	b.do(chromedp.ScrollIntoView(".lanes canvas"))
	b.requireOnScreen(0, 60)
	b.wheel(662, laneA, -100)
	b.requireOnScreen(10, 50)
	b.drag(600, 736, laneA)
	b.requireOnScreen(5, 45)
	b.do(chromedp.Click("#fit"))
	b.requireOnScreen(0, 60)
}

// longRun opens a run at the limit of what a history keeps.
func longRun(b *tab) {
	r := pingPong(20_000)
	for i := range history.MaxArrows {
		at := time.Duration(i) * 400 * time.Millisecond
		r.History.Arrows = append(r.History.Arrows, history.Arrow{From: "a", To: "b", Sent: at, Received: at + sec, Kind: elector.LeaderHeartbeat, Text: "LeaderHeartbeat"})
	}
	b.open(r)
	eventually(b, true, `document.querySelector("#zoomhint").checkVisibility()`)
	b.slide("12000")
	eventually(b, "a", `document.querySelector(".state tbody tr td:last-child").textContent`)
	b.do(chromedp.Click("#in"))
}
