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

// Figures asks for the node's metrics. The error says why they were not to be had.
func (c *Client) Figures(ctx context.Context) (Figures, error) {
	sent := time.Now()
	resp, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return Figures{}, err
	}
	defer resp.Body.Close()
	var f Figures
	if told, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		f.AheadLeast, f.AheadMost = ahead(told, sent, time.Now())
	}
	f.Values, err = samples(bufio.NewScanner(io.LimitReader(resp.Body, maxAnswer)))
	if err != nil {
		return Figures{}, fmt.Errorf("metrics of %s: %w", c.addr, err)
	}
	return f, nil
}

// ahead bounds how far a clock that was read between two moments is ahead. The
// reading was cut to seconds.
func ahead(told, sent, received time.Time) (least, most time.Duration) {
	return told.Sub(received), told.Add(time.Second).Sub(sent)
}

func samples(lines *bufio.Scanner) (map[string]float64, error) {
	values := map[string]float64{}
	for lines.Scan() {
		line := printable(lines.Text())
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("a sample is %q, but must be a series and a number", line)
		}
		values[line[:at]] = value
	}
	return values, lines.Err()
}
