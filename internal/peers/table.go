package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// table is a table of a page.
type table struct {
	rows   [][]string
	losses []loss
}

// loss names a cell in which this elector is worse.
type loss struct{ row, column string }

func (t *table) String() string {
	var b strings.Builder
	for i, row := range t.rows {
		// Without that space it is no table to all programs.
		fmt.Fprintf(&b, "|%s| %s|\n", cmp.Or(row[0], " "), strings.Join(row[1:], "| "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

// cell is a figure.
type cell struct {
	text  string
	worse bool // this elector is worse
}

// add adds a row. A cell in which this elector is worse is set in bold type.
func (t *table) add(name string, cells []cell) {
	row := []string{name}
	for i, c := range cells {
		if c.worse {
			c.text = "**" + c.text + "**"
			t.losses = append(t.losses, loss{name, t.rows[0][i+1]})
		}
		row = append(row, c.text)
	}
	t.rows = append(t.rows, row)
}

const missing = "-"

// ratios compares the median, the 90th and the 99th percentile of another system's times with
// those of this elector.
func ratios(theirs, ours []time.Duration) cell {
	if len(theirs) == 0 || len(ours) == 0 {
		return cell{text: missing}
	}
	c := cell{}
	var parts []string
	for _, q := range quantiles {
		r := float64(quantile(theirs, q)) / float64(max(quantile(ours, q), 1))
		c.worse = c.worse || r < 1
		parts = append(parts, figure(r))
	}
	c.text = strings.Join(parts, "/")
	return c
}

var quantiles = []float64{0.5, 0.9, 0.99}

// milliseconds shows the same percentiles of this elector's times.
func milliseconds(values []time.Duration) cell {
	if len(values) == 0 {
		return cell{text: missing}
	}
	return cell{text: ratios(values, []time.Duration{time.Millisecond}).text + " ms"}
}

// figure shows two digits that count, or all before the decimal point.
func figure(x float64) string {
	switch {
	case x >= 10:
		return fmt.Sprintf("%.0f", x)
	case x >= 1:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2g", x)
	}
}

// compare shows a figure of this elector with its unit, and another system's as a multiple of it.
func compare(ours, theirs float64, unit string) cell {
	if ours <= 0 || theirs <= 0 {
		return cell{text: missing}
	}
	r := theirs / ours
	return cell{fmt.Sprintf("%s%s x%s", figure(ours), unit, figure(r)), r < 1}
}
