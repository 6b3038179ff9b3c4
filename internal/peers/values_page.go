package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const valuesTitle = "## Values"

const valuesText = valuesTitle + `

Five voters of each system keep values of 1 KiB on one disk, {date}: bmqelect with ` + "`Publish`" + `
and profile ` + "`lan`" + `, embedded etcd with ` + "`Put`" + `. Both are called in the leader's process: one
after the other, and in {places} elections or of {places} keys at a time. Each value is another one.
Times are the median, the 90th and the 99th percentile; etcd's figures are multiples, **bold** where
bmqelect is worse.

{speed}
A flush of 1 KiB to that disk takes {flush} ms.

A record of 1 MiB is written, and a sixth node, which has nothing of it, becomes a voter: both take
{grown} ms (median and worst of {growths}). The leader stays.

At rest, per node of 5, without a record, and with one as a multiple:

{rest}
Again, in two minutes: ` + "`make bench-values`" + `.
`

// section is the part of the page about values.
func (v values) section() string {
	ms := func(d time.Duration) string { return figure(d.Seconds() * 1000) }
	rest := &table{rows: [][]string{costNames}}
	rest.add("lan", compareCosts(v.rest, v.had))
	return strings.NewReplacer(
		"{date}", time.Now().UTC().Format(time.DateOnly), "{places}", fmt.Sprint(places),
		"{speed}", v.speed().String(), "{flush}", ms(v.flush),
		"{grown}", ms(quantile(v.grown, 0.5))+" and "+ms(slices.Max(append(v.grown, 0))),
		"{growths}", fmt.Sprint(len(v.grown)), "{rest}", rest.String(),
	).Replace(valuesText)
}

// speed compares the systems that keep values.
func (v values) speed() *table {
	t := &table{rows: [][]string{{""}}}
	kinds := []string{"one after the other", fmt.Sprintf("%d at a time", places)}
	took, rates := make([][]cell, len(kinds)), make([][]cell, len(kinds))
	for _, w := range v.written {
		t.rows[0] = append(t.rows[0], w.name)
		ours := []speed{v.written[0].one, v.written[0].many}
		for k, theirs := range []speed{w.one, w.many} {
			if w.name == own {
				took[k] = append(took[k], milliseconds(theirs.took))
				rates[k] = append(rates[k], cell{text: figure(theirs.rate)})
				continue
			}
			took[k] = append(took[k], ratios(theirs.took, ours[k].took))
			ratio := theirs.rate / ours[k].rate
			rates[k] = append(rates[k], cell{"x" + figure(ratio), ratio > 1})
		}
	}
	for k, kind := range kinds {
		t.add(kind, took[k])
		t.add(kind+", in a second", rates[k])
	}
	return t
}
