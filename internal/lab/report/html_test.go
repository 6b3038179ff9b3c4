package report_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

func page(t *testing.T, runs ...verdict.Run) string {
	t.Helper()
	return string(written(t, func(b *bytes.Buffer) error { return report.HTML(b, runs) }))
}

func TestThePageIsTheSameEachTime(t *testing.T) {
	require.Equal(t, page(t, takeover(), steady()), page(t, takeover(), steady()))
}

var (
	tags  = regexp.MustCompile(`(?i)<(script|img|/script|/title|/style|!--)`)
	loads = regexp.MustCompile(
		`(?i)[a-z]+://|["'(]//|\burl\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\b`)
	within = regexp.MustCompile(`<script type="application/gzip" id="data">(.*?)</script>`)
	// local is what looks like a reference to something outside and is none.
	local = regexp.MustCompile(`(?m)(^|\s)// .*$|http://www\.w3\.org/2000/svg|url\(#bmq-[a-z]+\)`)
)

func TestNamesAddNoElementsToThePage(t *testing.T) {
	bare, hurt := page(t, takeover()), page(t, hostile())
	require.Equal(t, tags.FindAllString(bare, -1), tags.FindAllString(hurt, -1))
	require.Contains(t, hurt, "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>")
}

func TestThePageRefersToNothingOutside(t *testing.T) {
	require.Empty(t, loads.FindAllString(local.ReplaceAllString(page(t, takeover()), ""), -1))
}

// TestThePageRunsItsOwnTextsOnly computes what the policy must allow from what a browser
// would run.
func TestThePageRunsItsOwnTextsOnly(t *testing.T) {
	html := page(t, hostile())
	digest := func(tag string) string {
		_, rest, _ := strings.Cut(html, "<"+tag+">")
		text, _, ok := strings.Cut(rest, "</"+tag+">")
		require.True(t, ok, tag)
		sum := sha256.Sum256([]byte(text))
		return "&#39;sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "&#39;"
	}
	_, policy, _ := strings.Cut(html, `"Content-Security-Policy" content="`)
	policy, _, _ = strings.Cut(policy, `"`)
	require.Equal(t, "default-src &#39;none&#39;; img-src data:; style-src "+digest("style")+
		"; script-src "+digest("script"), strings.ReplaceAll(policy, "&#43;", "+"))
}

func TestThePageCarriesTheJSONLines(t *testing.T) {
	found := within.FindStringSubmatch(page(t, hostile(), steady()))
	require.Len(t, found, 2)
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(found[1])))
	require.NoError(t, err)
	lines, err := io.ReadAll(packed)
	require.NoError(t, err)
	require.Equal(t, string(jsonLines(t, hostile(), steady())), string(lines))
}

// At the bound of what a history keeps of messages, each text that of a heartbeat to four.
func TestThePageIsSmallHoweverMuchWasSent(t *testing.T) {
	r := takeover()
	r.History.Arrows = nil
	for i := range history.MaxArrows {
		at := time.Duration(i/4)*237*time.Microsecond + time.Microsecond
		r.History.Arrows = append(r.History.Arrows, history.Arrow{
			From: "a", To: []history.NodeID{"b", "c", "d", "o"}[i%4],
			Sent: at, Received: at + 1234*time.Microsecond,
			Kind: elector.LeaderHeartbeat.String(),
			Text: fmt.Sprintf("LeaderHeartbeat term=10 lsn=10.0 seq=%d sent=598h15m50s period=500ms", i/4),
		})
	}
	text := page(t, r)
	require.Less(t, len(text), 2_500_000)
	last := r.History.Arrows[history.MaxArrows-1].Sent.Seconds()
	require.Contains(t, text, fmt.Sprintf(`data-at="%v"><time>2.962</time><b></b>`+
		`<span>messages are not recorded from here on</span>`, last))
	_, after, _ := strings.Cut(text, "not recorded from here on")
	require.Contains(t, after, "<time>", "what happened later comes later")
	require.NotContains(t, page(t, takeover()), "not recorded from here")
}

func TestThePageSaysHowManyEventsItLeavesOut(t *testing.T) {
	r := takeover()
	for i := range 4_000 {
		r.History.Marks = append(r.History.Marks, history.Mark{At: time.Duration(i) * time.Minute})
	}
	text := page(t, r)
	require.Contains(t, text, `<li class="faint">and 1013 more; the json form has all</li>`)
	require.NotContains(t, page(t, takeover()), " more; the json")
}

// Methods of sets are newer than browsers that are still in use.
func TestThePagesScriptNeedsNoNewBrowser(t *testing.T) {
	require.NotRegexp(t, `\.is(DisjointFrom|SubsetOf|SupersetOf)\b|\.symmetricDifference\b`,
		page(t, takeover()))
}
