package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const valuesTitle = "## Values"

const valuesText = valuesTitle + `

Five voters of each system keep values of 1 KiB on one disk, {date}. bmqelect: ` + "`Publish`" + `,
profile ` + "`lan`" + `; etcd: ` + "`Put`" + `, embedded. Both are called in the leader's process: one after the
other, and in {places} elections or of {places} keys at a time. Times are
median/p90/p99; etcd's are multiples, and **bold** where bmqelect is worse.

{speed}
On this machine 1 KiB takes {trip} ms over loopback and back, and {flush} ms to the disk: 1.5 round trips
and a flush take {least} ms.

A sixth node that has nothing becomes a voter, with a record of 1 MiB, in {grown} ms (median and worst of
{growths}). The leader stays.

At rest, per node of 5:

{rest}
Again, in two minutes: ` + "`make bench-values`" + `.
`

// section is the part of the page about values.
func (v values) section() string {
	ms := func(d time.Duration) string { return figure(float64(d) / float64(time.Millisecond)) }
	return strings.NewReplacer(
		"{date}", time.Now().UTC().Format(time.DateOnly), "{places}", fmt.Sprint(places),
		"{speed}", v.speed().String(), "{trip}", ms(v.trip), "{flush}", ms(v.flush),
		"{least}", ms(v.trip*3/2+v.flush),
		"{grown}", ms(quantile(v.grown, 0.5))+" and "+ms(slices.Max(append(v.grown, 0))),
		"{growths}", fmt.Sprint(len(v.grown)), "{rest}", v.atRest().String(),
	).Replace(valuesText)
}

// speed compares the systems that keep values.
func (v values) speed() *table {
	t := &table{rows: [][]string{{""}}}
	for _, w := range v.written {
		t.rows[0] = append(t.rows[0], w.name)
	}
	for _, row := range []struct {
		name string
		of   func(written) speed
	}{
		{"one after the other", func(w written) speed { return w.one }},
		{fmt.Sprintf("%d at a time", places), func(w written) speed { return w.many }},
	} {
		ours := row.of(v.written[0])
		took, rates := []cell{milliseconds(ours.took)}, []cell{{text: figure(ours.rate)}}
		for _, w := range v.written[1:] {
			theirs := row.of(w)
			ratio := theirs.rate / ours.rate
			took = append(took, ratios(theirs.took, ours.took))
			rates = append(rates, cell{"x" + figure(ratio), ratio > 1})
		}
		t.add(row.name, took)
		t.add(row.name+", in a second", rates)
	}
	return t
}

// atRest is the table of what a record costs when nobody writes.
func (v values) atRest() *table {
	t := &table{rows: [][]string{{"", "CPU", "KiB/s", "packets/s", "wake-ups/s", "memory"}}}
	for i, name := range []string{"without a record", "with one"} {
		c := []costs{v.rest, v.had}[i]
		row := []string{name, figure(c.cpu) + "%", missing, missing, figure(c.wakes),
			figure(c.memory) + "MiB"}
		if c.traffic {
			row[2], row[3] = figure(c.bytes/1024), figure(c.packets)
		}
		t.rows = append(t.rows, row)
	}
	return t
}
