package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// page is the page about a run: docs/benchmarks.md.
func (r result) page() string {
	speed, cost := r.speed(), r.cost()
	m := r.machine
	replace := strings.NewReplacer(
		"{speed}", speed.String(), "{cost}", cost.String(),
		"{profiles}", r.atRest().String(),
		"{worse}", r.worse(speed.losses, cost.losses), "{failures}", r.failures(),
		"{machine}", fmt.Sprintf("%s, %d cores, Linux %s, %s, %s ms a flush to disk", m.cpu, m.cores,
			m.kernel, m.golang, figure(float64(m.flush)/1e6)),
		"{date}", m.date.UTC().Format(time.DateOnly), "{load}", fmt.Sprintf("%.0f s", r.load.Seconds()),
		"{quiet}", quiet.String(), "{trials}", fmt.Sprint(r.trials),
		"{minutes}", fmt.Sprintf("%.0f", math.Ceil(time.Since(began).Minutes())),
		"{raft}", m.versions["github.com/hashicorp/raft"],
		"{disk}", m.versions["github.com/hashicorp/raft-boltdb/v2"],
		"{etcd}", m.versions["go.etcd.io/etcd/server/v3"])
	if len(r.values.written) == 0 {
		return replace.Replace(text)
	}
	return replace.Replace(text) + "\n" + r.values.section()
}

const text = `# Benchmarks

Written by ` + "`make bench-peers`" + `, {date}, on
{machine}.

- bmqelect: profile ` + "`lan`" + `, 5 voters
- raft: hashicorp/raft {raft}, raft-boltdb {disk}, 5 voters; default timers, 50 ms, and its floor
- etcd: {etcd}, embedded, 3 members; the leader of its Raft
- etcd-session: ` + "`concurrency.Election`" + ` there, with the shortest sessions, 1 s

{speed}
Times until the first and the last survivor see the new leader: median/p90/p99 of {trials} trials,
each after {quiet} without a change; for bmqelect in ms, for others as multiples of that. **Bold**:
bmqelect is worse. Four clusters at a time of raft, etcd and etcd-session, which mostly wait.

- crash, hang: SIGKILL, SIGSTOP to the leader
- cold start: of all processes, on their old directories
- woken claims: after SIGCONT the old leader, asked without a round trip, says that it leads
- overlap: handovers in which two nodes say so at once, and the longest time
- load: changes of the leader in {load} beside two busy processes a core

At rest, per node, with equal heartbeat periods: bmqelect's figure, and the other's as its multiple.
Traffic is what is sent, with headers; wake-ups are those of threads. At the 0.75 ms of raft-5ms,
bmqelect often loses its leader.

{cost}
Profiles at rest, per node of 5:

{profiles}
bmqelect is worse than

{worse}{failures}
Raft and etcd also replicate data.

Again, in {minutes} minutes (Linux; traffic needs root): ` + "`make bench-peers`" + `. With
` + "`TRIALS=5 LOAD=10s SYSTEMS=\"raft etcd\"`" + ` it only prints.
`

// worse lists, by system, where this elector is worse. The systems are the columns of the table of
// elections, and the rows of the table of costs.
func (r result) worse(speed, cost []loss) string {
	in := map[string][]string{}
	for _, l := range speed {
		fault, _, _ := strings.Cut(l.row, ",") // the first and the last survivor are one
		if !slices.Contains(in[l.column], fault) {
			in[l.column] = append(in[l.column], fault)
		}
	}
	for _, l := range cost {
		in[l.row] = append(in[l.row], l.column)
	}
	var b strings.Builder
	for _, o := range r.outcomes {
		if len(in[o.name]) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", o.name, strings.Join(in[o.name], ", "))
		}
	}
	return cmp.Or(b.String(), "- none, in this run\n")
}

// ours is the outcome of this elector, the first; the others are compared with it.
func (r result) ours() outcome { return r.outcomes[0] }

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

func (r result) times(fault string, of func(trial) time.Duration) []cell {
	ours := times(r.ours().trials[fault], of)
	cells := []cell{milliseconds(ours)}
	for _, o := range r.outcomes[1:] {
		cells = append(cells, ratios(times(o.trials[fault], of), ours))
	}
	return cells
}

// each makes a row of counts, each with a remark; the lower, the better.
func (r result) each(count func(outcome) (int, string)) (cells []cell) {
	ours, _ := count(r.ours())
	for _, o := range r.outcomes {
		n, remark := count(o)
		if o.err != nil {
			cells = append(cells, cell{text: missing})
		} else {
			cells = append(cells, cell{fmt.Sprint(n, remark), n < ours})
		}
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
	t := &table{rows: [][]string{slices.Insert(slices.Clone(costNames), 1, "nodes", "period")}}
	for _, o := range r.outcomes[1:] {
		if o.equal.cpu == 0 {
			continue
		}
		nodes, period := cell{text: fmt.Sprint(o.nodes)}, cell{text: o.heartbeat.String()}
		t.add(o.name, append([]cell{nodes, period}, compareCosts(o.equal, o.costs)...))
	}
	return t
}

// costNames are the columns of compareCosts, behind that of the names.
var costNames = []string{"", "CPU", "KiB/s", "packets/s", "wake-ups/s", "memory"}

func compareCosts(a, b costs) []cell {
	return []cell{
		compare(a.cpu, b.cpu, "%"), compare(a.bytes/1024, b.bytes/1024, ""),
		compare(a.packets, b.packets, ""), compare(a.wakes, b.wakes, ""),
		compare(a.memory, b.memory, "MiB"),
	}
}

// atRest is the table of what this elector costs by profile.
func (r result) atRest() *table {
	t := &table{rows: [][]string{{"profile", "period", "leader's CPU", "mean CPU",
		"KiB/s", "packets/s", "wake-ups/s", "memory"}}}
	for _, p := range r.profiles {
		row := []string{p.kind, p.heartbeat.String(), figure(p.most) + "%", figure(p.cpu) + "%",
			missing, missing, figure(p.wakes), figure(p.memory) + "MiB"}
		if p.traffic {
			row[4], row[5] = figure(p.bytes/1024), figure(p.packets)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// failures lists what could not be measured.
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
