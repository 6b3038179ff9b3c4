package report_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

func page(t *testing.T, runs ...report.Run) string {
	t.Helper()
	return string(written(t, func(b *bytes.Buffer) error { return report.HTML(b, runs) }))
}

func TestThePageIsTheSameEachTime(t *testing.T) {
	require.Equal(t, page(t, takeover(), steady()), page(t, takeover(), steady()))
}

var (
	tags   = regexp.MustCompile(`(?i)<(script|img|/script|/title|/style|!--)`)
	loads  = regexp.MustCompile(`(?i)[a-z]+://|["'(]//|\burl\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\b`)
	within = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
)

func TestNamesAddNoElementsToThePage(t *testing.T) {
	bare, hurt := page(t, takeover()), page(t, hostile())
	require.Equal(t, tags.FindAllString(bare, -1), tags.FindAllString(hurt, -1))
	require.Contains(t, hurt, "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>")
}

func TestThePageRefersToNothingOutside(t *testing.T) {
	comments := regexp.MustCompile(`(?m)(^|\s)// .*$`)
	require.Empty(t, loads.FindAllString(comments.ReplaceAllString(page(t, takeover()), ""), -1))
}

func TestTheDataOfThePageAreJSON(t *testing.T) {
	found := within.FindStringSubmatch(page(t, hostile(), steady()))
	require.Len(t, found, 2)
	var data struct {
		Runs []struct{ Scenario, Variant string }
	}
	require.NoError(t, json.Unmarshal([]byte(found[1]), &data))
	require.Len(t, data.Runs, 2)
	require.Equal(t, "<script>alert(1)</script>", data.Runs[0].Scenario)
	require.Equal(t, "no faults", data.Runs[1].Variant)
}

func TestHTMLReturnsTheWritersError(t *testing.T) {
	require.ErrorIs(t, report.HTML(full{}, []report.Run{takeover()}), errFull)
}
