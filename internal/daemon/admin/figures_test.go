package admin

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFiguresAreReadWithTheClock(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte("# HELP a x y\na 1\nb{le=\"0.2\",of=\"x y\"} 2.5e-3\n"))
	}))
	t.Cleanup(server.Close)
	c := NewClient(strings.TrimPrefix(server.URL, "http://"))
	t.Cleanup(c.Close)
	f, err := c.Figures(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"a": 1, `b{le="0.2",of="x y"}`: 0.0025}, f.Values)
	require.LessOrEqual(t, f.AheadLeast, time.Hour)
	require.GreaterOrEqual(t, f.AheadMost, time.Hour)
}

func TestAClockIsBoundedByTheQuestion(t *testing.T) {
	told := time.Unix(100, 0)
	least, most := ahead(told, time.Unix(90, 0), time.Unix(92, 0))
	require.Equal(t, 8*time.Second, least, "it read 100 at 92 at the latest")
	require.Equal(t, 11*time.Second, most, "it read less than 101 at 90 at the earliest")
}

func TestSamplesThatAreNoneAreNamed(t *testing.T) {
	_, err := samples(bufio.NewScanner(strings.NewReader("a one\n")))
	require.ErrorContains(t, err, `a sample is "a one"`)
}
