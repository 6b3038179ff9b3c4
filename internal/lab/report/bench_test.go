package report_test

import (
	"io"
	"testing"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// BenchmarkForms writes a run in which the leader changes 10,000 times.
func BenchmarkForms(b *testing.B) {
	runs := []report.Run{pingPong(10_000)}
	for name, write := range map[string]func(io.Writer, []report.Run) error{
		"text": func(w io.Writer, runs []report.Run) error { return report.Text(w, runs, report.TextOptions{}) },
		"json": report.JSON,
		"svg":  report.SVG,
		"html": report.HTML,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := write(io.Discard, runs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
