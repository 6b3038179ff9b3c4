package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// figuresOf asks a server whose clock is ahead by an hour.
func figuresOf(t *testing.T, text string) (Figures, error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	c := NewClient(strings.TrimPrefix(server.URL, "http://"))
	return c.Figures(t.Context())
}

func TestFiguresAreReadWithTheClock(t *testing.T) {
	before := time.Now()
	f, err := figuresOf(t, "# HELP a x y\na 1\nb{le=\"0.2\",of=\"x y\"} 2.5e-3\n")
	took := time.Since(before)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"a": 1, `b{le="0.2",of="x y"}`: 0.0025}, f.Values)
	require.LessOrEqual(t, f.AheadLeast, time.Hour)
	require.GreaterOrEqual(t, f.AheadMost, time.Hour)
	require.LessOrEqual(t, f.AheadMost-f.AheadLeast, time.Second+took)
	_, err = figuresOf(t, "a one\n")
	require.ErrorContains(t, err, `a sample is "a one"`)
}
