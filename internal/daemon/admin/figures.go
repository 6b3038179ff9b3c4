package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Figures are a node's metrics at a moment.
type Figures struct {
	// Values are the samples by series, as /metrics writes these: name{label="value"}.
	Values map[string]float64
	// AheadLeast and AheadMost bound by how much the node's wall clock is ahead of
	// this machine's. It tells the time in whole seconds, so they are more than one apart.
	AheadLeast, AheadMost time.Duration
}

// Figures asks for the node's metrics.
func (c *Client) Figures(ctx context.Context) (Figures, error) {
	var f Figures
	sent, values := time.Now(), map[string]float64{}
	resp, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	// The clock was read between two moments of ours, and cut to seconds.
	if told, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		f.AheadLeast, f.AheadMost = told.Sub(time.Now()), told.Add(time.Second).Sub(sent)
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxAnswer))
	for lines.Scan() {
		line := printable(lines.Text())
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return f, fmt.Errorf("metrics of %s: a sample is %q, but must be a series and a number", c.addr,
				line)
		}
		values[line[:at]] = value
	}
	f.Values = values
	return f, lines.Err()
}
