package report_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/history"
	"github.com/bmqelect/bmqelect/internal/report"
)

var shots = flag.String("shots", "", "write screenshots of the page to this folder")

// patience bounds everything that a test does with a browser.
const patience = 2 * time.Minute

// browser is a tab that shows a report, and what it complained of.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	errors   []string
	requests []string
}

// open shows runs in a real browser; the test is skipped where there is none.
func open(t *testing.T, runs ...report.Run) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium to open the page in; on Debian: apt-get install -y chromium")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(file, []byte(page(t, runs...)), 0o600))
	limited, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	// A container seldom allows Chromium its sandbox, nor has it much /dev/shm.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	allocator, stop := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	b.do(call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}), chromedp.Navigate("file://"+file),
		chromedp.WaitReady("#moments .matrix"))
	return b
}

// call makes a command of the browser's protocol a step of a test.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// listen collects errors, and requests for anything but the page itself.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, fmt.Sprint(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.errors = append(b.errors, fmt.Sprint(e.Type, e.Args))
	case *log.EventEntryAdded:
		b.errors = append(b.errors, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "data:") {
			b.requests = append(b.requests, e.Request.URL)
		}
	}
}

type action = chromedp.Action[chromedp.Void]

func (b *browser) do(actions ...action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// value evaluates an expression of the page.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}

// eventually waits until an expression of the page is as wanted.
func eventually[T comparable](b *browser, want T, expression string) {
	b.t.Helper()
	var last T
	require.Eventually(b.t, func() bool {
		last = value[T](b, expression)
		return last == want
	}, 20*time.Second, 20*time.Millisecond, "%s: want %v", expression, want)
}

// requireQuiet is called last: nothing was complained of, nothing fetched.
func (b *browser) requireQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.errors)
	require.Len(b.t, b.requests, 1, "only the page itself")
}

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

func TestLanesAreDrawn(t *testing.T) {
	b := open(t, talkative())
	leader, follower := "23,121,59", "195,212,234"
	eventually(b, leader, pixels+fmt.Sprintf("(300, %d, 1)[0]", laneA))
	require.Equal(t, follower, value[string](b, pixels+fmt.Sprintf("(1150, %d, 1)[0]", laneA+5)))
	require.Equal(t, "214,69,69", value[string](b, pixels+fmt.Sprintf("(580, %d, 1)[0]", leading+5)), "nobody leads from 22s to 26s")
	b.requireQuiet()
}

// point moves the mouse over a place of the canvas.
func (b *browser) point(x, y float64) {
	b.t.Helper()
	at := value[[]float64](b, `(() => { const r = document.querySelector(".lanes canvas").getBoundingClientRect(); return [r.left, r.top]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", at[0]+x, at[1]+y))
}

func TestHoverTells(t *testing.T) {
	b := open(t, talkative())
	b.do(chromedp.ScrollIntoView(".lanes canvas"))
	b.point(300, laneA)
	eventually(b, "a: leader", `document.querySelector("#tip b")?.textContent`)
	require.Contains(t, value[string](b, `document.querySelector("#tip").textContent`), "lease to 22s")
	b.point(580, leading)
	eventually(b, "nobody leads", `document.querySelector("#tip b").textContent`)
	b.point(700, 18+18+5)
	b.shoot("hover.png")
	eventually(b, "cut: a-*", `document.querySelector("#tip b").textContent`)
	b.point(10, laneA)
	eventually(b, true, `document.querySelector("#tip").hidden`)
	b.requireQuiet()
}

func TestMessagesOnZoom(t *testing.T) {
	b := open(t, talkative())
	// Between lane a and the next one there is nothing but messages.
	arrows := pixels + fmt.Sprintf(`(200, %d, 900).includes("107,124,147")`, laneA+13)
	eventually(b, false, arrows)
	b.slide("10.02")
	for range 9 {
		b.do(chromedp.Click("#in"))
	}
	eventually(b, true, arrows)
	b.do(chromedp.Click("#out"), chromedp.Click("#out"), chromedp.Click("#out"), chromedp.Click("#out"))
	b.shoot("arrows.png")
	b.do(chromedp.Click("#messages"))
	eventually(b, false, arrows)
	b.requireQuiet()
}

// slide moves the slider to a time.
func (b *browser) slide(to string) {
	b.t.Helper()
	b.do(chromedp.SetValue("#slider", to))
	value[bool](b, `document.querySelector("#slider").dispatchEvent(new Event("input"))`)
}

const linkAtoC = `document.querySelector('.matrix td[data-from=a][data-to=c]').dataset.state`

func TestTheSliderMovesTheMatrix(t *testing.T) {
	b := open(t, talkative())
	eventually(b, "follows", linkAtoC)
	b.slide("30")
	eventually(b, "cut", linkAtoC)
	b.slide("49")
	eventually(b, "hears", linkAtoC)
	require.Equal(t, "off", value[string](b, `document.querySelector('.matrix td[data-from=b][data-to=c]').dataset.state`), "b is paused")
	require.Equal(t, "follows", value[string](b, `document.querySelector('.matrix td[data-from=c][data-to=a]').dataset.state`))
	require.Equal(t, "pause b", value[string](b, `[...document.querySelectorAll(".events li")].filter(l => l.textContent.includes("pause b")).map(l => l.querySelector("span").textContent)[0]`))
	require.Equal(t, "crash d", value[string](b, `document.querySelector(".events [aria-current] span").textContent`))
	b.requireQuiet()
}

const nowShown = `parseFloat(document.querySelector("#now").textContent)`

func TestPlayGoesOnAndEnds(t *testing.T) {
	b := open(t, talkative())
	b.do(chromedp.SetValue("#speed", "60"), chromedp.Click("#play"))
	eventually(b, "Pause", `document.querySelector("#play").textContent`)
	eventually(b, true, nowShown+" > 5")
	eventually(b, 60.0, nowShown)
	eventually(b, "Play", `document.querySelector("#play").textContent`)
	b.requireQuiet()
}

func TestKeys(t *testing.T) {
	b := open(t, talkative())
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
	b.requireQuiet()
}

func TestVerdictsAndEventsLeadThere(t *testing.T) {
	b := open(t, talkative())
	b.do(chromedp.Click("#expected .failed button"))
	eventually(b, 26.0, nowShown)
	b.do(chromedp.Click(".events li:last-child button"))
	eventually(b, 55.0, nowShown)
	require.Equal(t, "1 did not hold", value[string](b, `document.querySelector("#verdict").textContent`))
	b.requireQuiet()
}

func TestTheBrowserShowsNamesAsText(t *testing.T) {
	b := open(t, hostile(), steady())
	require.Equal(t, "<script>alert(1)</script>", value[string](b, `document.querySelector("h1").textContent`))
	require.Equal(t, 2, value[int](b, `document.scripts.length`))
	require.Zero(t, value[int](b, `document.images.length`))
	require.Equal(t, 2, value[int](b, `document.querySelectorAll(".lanes canvas").length`))
	b.requireQuiet()
}

// The page must not be wider than the screen, on any.
func TestThePageFitsTheScreen(t *testing.T) {
	b := open(t, talkative(), steady())
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 480} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			b.do(call(emulation.SetEmulatedMedia, media), chromedp.EmulateViewport(width, 900))
			eventually(b, true, fmt.Sprintf("document.documentElement.clientWidth === %d && document.documentElement.scrollWidth <= %[1]d", width))
			b.shoot(fmt.Sprintf("%s-%d.png", scheme, width))
		}
	}
	b.requireQuiet()
}

// shoot keeps a picture of the whole page for people to look at, if asked to.
func (b *browser) shoot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*shots, name), png, 0o644))
}
