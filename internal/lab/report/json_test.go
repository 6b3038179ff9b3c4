package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

func jsonLines(t *testing.T, runs ...verdict.Run) []byte {
	t.Helper()
	return written(t, func(b *bytes.Buffer) error { return report.JSON(b, runs) })
}

func TestJSONGolden(t *testing.T) {
	endless := steady()
	endless.History.Cuts = []history.Cut{{From: "a", To: "b", Start: 50 * sec, End: history.Forever}}
	golden(t, "single.jsonl", jsonLines(t, takeover()))
	golden(t, "compare.jsonl", jsonLines(t, takeover(), endless))
	golden(t, "hostile.jsonl", jsonLines(t, hostile()))
	require.Contains(t, string(jsonLines(t, split())), `,"two_leaders_s":20,`)
}

func TestJSONIsOneObjectPerLineInOrderOfTime(t *testing.T) {
	last, seen := map[float64]float64{}, map[string]int{}
	for line := range bytes.Lines(jsonLines(t, hostile(), steady())) {
		var event map[string]any
		require.NoError(t, json.Unmarshal(line, &event), string(line))
		kind, run := event["type"].(string), event["run"].(float64)
		seen[kind]++
		if at, timed := event["at_s"].(float64); timed && kind != "verdict" {
			require.GreaterOrEqual(t, at, last[run], string(line))
			last[run] = at
		}
	}
	require.Equal(t, map[string]int{
		"run": 2, "mark": 7, "cut": 8, "transition": 5, "message": 2, "problem": 2, "verdict": 4,
		"summary": 2,
	}, seen)
}
