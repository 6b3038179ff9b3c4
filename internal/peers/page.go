package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// page is what is written about a run: docs/benchmarks.md.
func (r result) page() string {
	speed, cost := r.speed(), r.cost()
	m := r.machine
	worse := append(slices.Clone(speed.worse), cost.worse...)
	if len(worse) == 0 {
		worse = []string{"nowhere in this run"}
	}
	for i, w := range worse {
		worse[i] = "- " + w
	}
	replace := strings.NewReplacer(
		"{speed}", speed.String(), "{cost}", cost.String(),
		"{worse}", strings.Join(worse, "\n"), "{failures}", r.failures(),
		"{machine}", fmt.Sprintf("%s, %d cores, Linux %s, %s; a flush to disk takes %s ms", m.cpu,
			m.cores, m.kernel, m.golang, figure(float64(m.flush)/1e6)),
		"{date}", m.date.UTC().Format(time.DateOnly), "{load}", r.load.String(),
		"{trials}", fmt.Sprint(r.trials), "{minutes}", fmt.Sprintf("%.0f", time.Since(began).Minutes()),
		"{raft}", m.versions["github.com/hashicorp/raft"],
		"{disk}", m.versions["github.com/hashicorp/raft-boltdb/v2"],
		"{etcd}", m.versions["go.etcd.io/etcd/server/v3"])
	return replace.Replace(text)
}

const text = `# Benchmarks

Written by ` + "`make bench-peers`" + `, not by hand: {date}, {machine}.

- bmqelect: this repository, profile ` + "`lan`" + `, 5 voters
- raft: hashicorp/raft {raft} on raft-boltdb {disk}, 5 voters: default timers, and time-outs of 50 ms
  and of 5 ms, its floor
- etcd: {etcd}, embedded, 3 members, default timers: the leader of its own Raft
- etcd-session: ` + "`concurrency.Election`" + ` in such members, with sessions of 1 s, the shortest

Every node is a process, and flushes to disk what it must not forget.

{speed}
First and last: until the first and the last survivor see the new leader; median/p90/p99 of {trials}
trials. Times of bmqelect are in ms, those of others are multiples of them. **Bold**: bmqelect is
worse.

- crash: SIGKILL to the leader
- hang: SIGSTOP; after SIGCONT the old leader, asked if it leads, says yes (woken claims): by its
  answer without a round trip, such as ` + "`IsLeader()` or `State()`" + `
- cold start: all processes, with their old directories
- overlap: how often two nodes said during a handover that they lead, and the longest time
- load: changes of the leader in {load} beside two busy processes a core

Costs per node at rest, with equal heartbeat periods and numbers of nodes: bmqelect's figure, and
the other's as its multiple. Bytes and packets are those sent, with headers, over loopback.

{cost}
Where bmqelect is worse:

{worse}
{failures}
raft and etcd also replicate data, which bmqelect does not.

To run it again (Linux; root for bytes and packets; {minutes} minutes): ` + "`make bench-peers`" + `.
` + "`TRIALS=5 LOAD=10s SYSTEMS=\"raft etcd\"`" + ` does less and only prints.
`

// of returns the outcome of ours.
func (r result) ours() outcome {
	for _, o := range r.outcomes {
		if o.name == own {
			return o
		}
	}
	return outcome{}
}

// speed is the table of elections.
func (r result) speed() *table {
	t := &table{rows: [][]string{{""}}}
	for _, o := range r.outcomes {
		t.rows[0] = append(t.rows[0], o.name)
	}
	for _, f := range faults {
		t.add(f.name+", first", r.times(f.name, first))
		t.add(f.name+", last", r.times(f.name, last))
	}
	t.add("woken claims", r.each(claims))
	t.add("overlap", r.each(overlapping))
	if r.load > 0 {
		t.add("load", r.each(func(o outcome) (int, string) { return o.changes, "" }))
	}
	return t
}

func (r result) times(fault string, of func(trial) time.Duration) (cells []cell) {
	ours := times(r.ours().trials[fault], of)
	for _, o := range r.outcomes {
		if o.name == own {
			cells = append(cells, milliseconds(ours))
		} else {
			cells = append(cells, ratios(times(o.trials[fault], of), ours))
		}
	}
	return cells
}

// each makes a row of counts, each with a remark; the lower, the better.
func (r result) each(count func(outcome) (int, string)) (cells []cell) {
	ours, _ := count(r.ours())
	for _, o := range r.outcomes {
		n, remark := count(o)
		c := cell{fmt.Sprint(n, remark), n < ours}
		if o.err != nil {
			c = cell{text: missing}
		}
		cells = append(cells, c)
	}
	return cells
}

func claims(o outcome) (n int, remark string) {
	trials := o.trials["hang"]
	for _, t := range trials {
		if t.claimed {
			n++
		}
	}
	return n, fmt.Sprintf("/%d", len(trials))
}

func overlapping(o outcome) (n int, remark string) {
	all := times(o.trials["handover"], overlaps)
	for _, d := range all {
		if d > 0 {
			n++
		}
	}
	remark = fmt.Sprintf("/%d", len(all))
	if n > 0 {
		remark += fmt.Sprintf(", %s ms", figure(float64(slices.Max(all))/1e6))
	}
	return n, remark
}

// cost is the table of costs.
func (r result) cost() *table {
	t := &table{rows: [][]string{{"", "nodes", "period", "CPU", "KiB/s", "packets/s", "memory"}}}
	for _, o := range r.outcomes {
		if o.name == own || o.equal.cpu == 0 {
			continue
		}
		a, b := o.equal, o.costs
		t.add(o.name, []cell{
			{text: fmt.Sprint(o.nodes)}, {text: o.heartbeat.String()},
			compare(a.cpu, b.cpu, "%"), compare(a.bytes/1024, b.bytes/1024, ""),
			compare(a.packets, b.packets, ""), compare(a.memory, b.memory, "MiB"),
		})
	}
	return t
}

// failures names what could not be measured.
func (r result) failures() string {
	var b strings.Builder
	for _, o := range r.outcomes {
		if o.err != nil {
			fmt.Fprintf(&b, "\n%s is incomplete: %v\n", o.name, o.err)
		}
		for _, f := range faults {
			if n := o.failed[f.name]; n > 0 {
				fmt.Fprintf(&b, "\n%s: %s failed %d times.\n", o.name, f.name, n)
			}
		}
	}
	return b.String()
}
