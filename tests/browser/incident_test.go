package browser

import (
	"bytes"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The page of an incident has its badge, what was recorded first, and on a narrow screen the
// lanes before the pictures.
func anIncident(b *tab) {
	recorded, replayed := b.simulated("scouting=false"), b.simulated()
	recorded.History.Mode, recorded.History.Variant = "recorded", "recorded"
	var page bytes.Buffer
	require.NoError(b.t, report.Incident(&page, recorded, replayed, 2, 3))
	b.openPage(page.Bytes())
	require.Equal(b.t, "the replay differs in 2 of 3 leaderships",
		value[string](b, `document.querySelector("#verdict.failed").textContent`))
	require.Equal(b.t, []string{"recorded", "as written"}, value[[]string](b,
		`[...document.querySelectorAll("#lanes .variant")].map(e => e.textContent)`))
	b.at(30 * sec)
	require.Equal(b.t, []string{"two leaders: a, c", "c leads"},
		perStage[string](b, `e.querySelector(".reign.rival, .reign").value`))
	const lanesFirst = `document.querySelector("#lanes").getBoundingClientRect().top <
		document.querySelector("#stages").getBoundingClientRect().top`
	for width, narrow := range map[int64]bool{400: true, 1280: false} {
		b.do(chromedp.EmulateViewport(width, 900))
		eventually(b, narrow, lanesFirst)
	}
}
