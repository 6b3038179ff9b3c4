package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	within = regexp.MustCompile(`(?s)<script type="application/jsonl" id="data">\n(.*?)</script>`)
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
	require.Equal(t, string(jsonLines(t, hostile(), steady())), found[1])
}

func TestHTMLReturnsTheWritersError(t *testing.T) {
	require.ErrorIs(t, report.HTML(full{}, []verdict.Run{takeover()}), errFull)
}
