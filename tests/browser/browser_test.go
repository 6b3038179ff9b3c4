// Package browser opens the HTML page of a report in a real browser. It uses
// nothing of the other tests, so that a browser's library need not be in the
// module that the packages are in.
package browser

import (
	"bytes"
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
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

var shots = flag.String("shots", "", "write screenshots of the page to this folder")

// patience bounds one step of a test, on a machine that has nothing else to do.
const patience = 30 * time.Second

// TestInABrowser opens the page in a real browser, in a tab for each test.
func TestInABrowser(t *testing.T) {
	browser := start(t)
	for name, test := range map[string]func(*tab){
		"lanes move with the view":       lanesMove,
		"labels are where there is room": labelsWhereThereIsRoom,
		"hover tells":                    hoverTells,
		"messages on zoom":               messagesOnZoom,
		"the slider moves the links":     sliderMovesLinks,
		"play goes on and ends":          playGoesOnAndEnds,
		"keys":                           keys,
		"wheel and drag":                 wheelAndDrag,
		"the overview moves the view":    overviewMovesTheView,
		"verdicts and events lead there": verdictsLeadThere,
		"names are text":                 namesAreText,
		"the page fits the screen":       pageFitsScreen,
		"lines are behind names":         linesAreBehind,
		"what is compared is not judged": comparedIsNotJudged,
		"an incident":                    anIncident,
		"a long run":                     longRun,
		"play moves clock and dots":      playMovesClockAndDots,
		"auto is slow at events":         autoIsSlowAtEvents,
		"the slider moves all stages":    sliderMovesAllStages,
		"who leads is named":             leadersAreNamed,
		"what is cut and down is drawn":  cutAndDownAreDrawn,
		"lost messages stop midway":      lostMessagesStopMidway,
		"kinds have looks":               kindsHaveLooks,
		"stages without a mouse":         stagesWithoutAMouse,
		"stages without motion":          stagesWithoutMotion,
		"stages fit the screen":          stagesFitTheScreen,
		"stages of odd runs":             stagesOfOddRuns,
		"two leaders are red":            twoLeadersAreRed,
		"figures are ordered by harm":    figuresByHarm,
		"a narrow screen has two runs":   narrowScreenHasTwoRuns,
	} {
		t.Run(name, func(t *testing.T) {
			b := &tab{t: t, browser: browser}
			test(b)
			b.requireQuiet()
		})
	}
}

// start runs a browser; the test is skipped where there is none.
func start(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium to open the page in; on Debian: apt-get install -y chromium")
	}
	// A container seldom allows Chromium its sandbox, nor has it much /dev/shm.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, _ := chromedp.NewContext(allocator)
	require.NoError(t, bounded(t, stop, func() error { return chromedp.Do(ctx) }))
	t.Cleanup(func() { require.NoError(t, chromedp.Cancel(ctx)) })
	return ctx
}

// bounded takes one step, and ends all that it belongs to if it hangs.
func bounded(t *testing.T, end func(), step func() error) error {
	limit := testkit.Limit(patience)
	defer time.AfterFunc(limit, func() { t.Logf("a step took longer than %v", limit); end() }).Stop()
	return step()
}

// tab shows a report, and keeps what it complained of.
type tab struct {
	t       *testing.T
	browser context.Context
	ctx     context.Context
	end     func()

	mu       sync.Mutex
	opened   int
	errors   []string
	requests []string
}

// open shows runs.
func (b *tab) open(runs ...verdict.Run) {
	b.t.Helper()
	var page bytes.Buffer
	require.NoError(b.t, report.HTML(&page, runs))
	b.openPage(page.Bytes())
}

func (b *tab) openPage(page []byte) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "report.html")
	require.NoError(b.t, os.WriteFile(file, page, 0o600))
	b.opened++
	ctx, end := chromedp.NewContext(b.browser)
	b.t.Cleanup(end)
	b.ctx, b.end = ctx, end
	require.NoError(b.t, chromedp.Listen(ctx, b.listen))
	b.do(call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}))
	b.do(chromedp.Navigate("file://" + file))
	b.do(chromedp.WaitReady("body[data-ready]"))
}

// call makes a command of the browser's protocol a step of a test.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// listen collects errors, and requests for anything except the page itself.
func (b *tab) listen(event any) {
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

func (b *tab) do(actions ...action) {
	b.t.Helper()
	require.NoError(b.t, bounded(b.t, b.end, func() error { return chromedp.Do(b.ctx, actions...) }))
}

// value evaluates an expression of the page.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := evaluate[T](b, expression)
	require.NoError(b.t, err, expression)
	return v
}

func evaluate[T any](b *tab, expression string) (v T, err error) {
	err = bounded(b.t, b.end, func() (err error) {
		v, err = chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
		return err
	})
	return v, err
}

// eventually waits until an expression of the page is as wanted, and performs the given actions
// before it looks.
func eventually[T comparable](b *tab, want T, expression string, first ...func()) {
	b.t.Helper()
	require.EventuallyWithT(b.t, func(c *assert.CollectT) {
		for _, do := range first {
			do()
		}
		got, err := evaluate[T](b, expression)
		require.NoError(c, err)
		require.Equal(c, want, got)
	}, testkit.Limit(patience), 20*time.Millisecond, expression)
}

// requireQuiet is called last: nothing was complained of, nothing fetched.
func (b *tab) requireQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.errors)
	require.Len(b.t, b.requests, b.opened, "only the page itself")
}

// mouse does something at a place of the lanes.
func (b *tab) mouse(kind input.DispatchMouseEventType, x, y float64, how ...chromedp.MouseOption) {
	b.t.Helper()
	at := value[[]float64](b, `(() => {
		const r = document.querySelector("#lanes").getBoundingClientRect();
		return [r.left, r.top];
	})()`)
	b.do(chromedp.MouseEvent(kind, at[0]+x, at[1]+y, how...))
}

// point moves the mouse there.
func (b *tab) point(x, y float64) {
	b.t.Helper()
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
}

// middle is the middle of an element on the screen.
func (b *tab) middle(selector string) (x, y float64) {
	b.t.Helper()
	at := value[[]float64](b, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q).getBoundingClientRect();
		return [(e.left + e.right) / 2, (e.top + e.bottom) / 2];
	})()`, selector))
	return at[0], at[1]
}

// pointAt moves the mouse to the middle of an element.
func (b *tab) pointAt(selector string) {
	b.t.Helper()
	x, y := b.middle(selector)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// click clicks at the middle of a picture, which the library takes for hidden.
func (b *tab) click(selector string) {
	b.t.Helper()
	x, y := b.middle(selector)
	left, once := chromedp.ButtonLeft, chromedp.ClickCount(1)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, x, y, left, once),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, x, y, left, once))
}

// drag moves the mouse with its button held from one place to another; a click
// if that is the same.
func (b *tab) drag(from, to, y float64) {
	b.t.Helper()
	held := func(p *input.DispatchMouseEventParams) { p.Buttons = 1 }
	left, once := chromedp.ButtonLeft, chromedp.ClickCount(1)
	b.mouse(input.DispatchMouseEventTypeMousePressed, from, y, left, once)
	if to != from {
		b.mouse(input.DispatchMouseEventTypeMouseMoved, to, y, held)
	}
	b.mouse(input.DispatchMouseEventTypeMouseReleased, to, y, left, once)
}

// wheel turns the wheel with the control key held.
func (b *tab) wheel(x, y, by float64) {
	b.t.Helper()
	b.mouse(input.DispatchMouseEventTypeMouseWheel, x, y, func(p *input.DispatchMouseEventParams) {
		// Chromium wants both distances, but zero would not be sent.
		p.Modifiers, p.DeltaX, p.DeltaY = int64(chromedp.ModifierCtrl), 0.001, by
	})
}

// slide moves the slider to a time.
func (b *tab) slide(to string) {
	b.t.Helper()
	value[bool](b, fmt.Sprintf(`(slider => {
		slider.value = %q;
		return slider.dispatchEvent(new Event("input"));
	})(document.querySelector("#slider"))`, to))
}

// shoot keeps a picture of the whole page for people to look at, if asked to.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*shots, name), png, 0o644))
}
