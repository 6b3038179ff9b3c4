package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScales(t *testing.T) {
	s := Scale{0.1, 1000}
	for v, want := range map[float64]float64{0: 0, 0.1: 0, 1: 0.25, 10: 0.5, 1000: 1, 5000: 1} {
		require.InDelta(t, want, s.share(v), 1e-9, v)
	}
}

func TestFiguresAreBrief(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0004: "0", 0.009: "0.009", 0.25: "0.25", 1.234: "1.23", 9.996: "10", 12.34: "12.3",
		99.4: "99.4", 99.997: "99.99", 100: "100", 8782.4: "8782",
	} {
		require.Equal(t, want, Brief(v))
	}
}
