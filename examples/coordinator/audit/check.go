package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Report is what Check has found.
type Report struct {
	Terms    int      // in which anything was assigned
	Assigned int      // assignments that leaders have made
	Begun    int      // of them: that were put in force
	Worked   int      // acts under them
	Problems []string // what must not be, in words
}

// Check compares journals, one for each node, and demands that
//
//   - an LSN names one assignment, made once, and only one node assigns in a term;
//   - a node works only under what was assigned to it, while that is in force;
//   - what a node accepts for a partition has rising LSNs, over its restarts too;
//   - of two assignments of one partition, wherever they were in force, the one
//     with the older LSN has ended before the other begins.
func Check(journals ...[]Line) Report {
	c := checker{made: map[lsn.LSN]*assignment{}, leaders: map[lsn.Term]cluster.NodeID{}}
	for _, lines := range journals {
		c.leader(lines)
	}
	for _, lines := range journals {
		w := worker{c: &c, newest: map[int]*assignment{}}
		for _, l := range lines {
			w.follow(l)
		}
	}
	c.compare()
	c.report.Terms = len(c.leaders)
	return c.report
}

type checker struct {
	report  Report
	made    map[lsn.LSN]*assignment
	leaders map[lsn.Term]cluster.NodeID
}

// assignment is one partition in one node's care.
type assignment struct {
	lsn       lsn.LSN
	partition int
	to        cluster.NodeID
	begun     time.Time // zero if it never was in force
	seen      time.Time // when it was in force for the last time that is known
	ended     bool
}

func (a *assignment) String() string {
	return fmt.Sprintf("%s (partition %d, node %s)", a.lsn, a.partition, a.to)
}

func (c *checker) wrong(format string, args ...any) {
	c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
}

// leader collects what a node has assigned.
func (c *checker) leader(lines []Line) {
	for _, l := range lines {
		if l.Event != Assigned {
			continue
		}
		c.report.Assigned++
		if other, ok := c.leaders[l.LSN.Term]; ok && other != l.Node {
			c.wrong("both %s and %s assign in term %d", other, l.Node, l.LSN.Term)
		}
		c.leaders[l.LSN.Term] = l.Node
		made := &assignment{lsn: l.LSN, partition: l.Partition, to: l.To}
		if first := c.made[l.LSN]; first != nil {
			c.wrong("two assignments have one LSN: %s and %s", first, made)
			continue
		}
		c.made[l.LSN] = made
	}
}

// compare looks at each partition's assignments in the order of their LSNs.
func (c *checker) compare() {
	before := map[int]*assignment{} // of each partition: what was in force longest
	inOrder := slices.SortedFunc(maps.Values(c.made), func(a, b *assignment) int { return a.lsn.Compare(b.lsn) })
	for _, a := range inOrder {
		if a.begun.IsZero() {
			continue
		}
		old := before[a.partition]
		if old != nil && a.begun.Before(old.seen) {
			c.wrong("%s begins %s before %s has ended", a, old.seen.Sub(a.begun), old)
		}
		if old == nil || old.seen.Before(a.seen) {
			before[a.partition] = a
		}
	}
}
