package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// line is one line of a process's log.
type line struct {
	Time      time.Time      `json:"@timestamp"`
	Event     string         `json:"@message"`
	Node      cluster.NodeID `json:"node"`
	Partition int            `json:"partition"`
	LSN       lsn.LSN        `json:"lsn"`
	To        cluster.NodeID `json:"to"`
	Term      lsn.Term       `json:"term"`
	At        time.Time      `json:"at"` // of work: by the clock that allowed it
}

// owned names an assignment: one LSN may be that of several partitions.
type owned struct {
	lsn       lsn.LSN
	partition int
}

// span is an assignment, and when its worker worked under it.
type span struct {
	line
	begun, last time.Time
}

func (s *span) String() string {
	return fmt.Sprintf("%s (partition %d, %s)", s.LSN, s.Partition,
		s.To)
}

// report is what an audit found.
type report struct {
	terms, assigned, worked int
	problems                []string
}

// audit reads the logs of all processes, of one machine, and demands that
//   - an LSN names one owner of a partition, in the words of every leader that publishes or finds
//     it in the record, and only one node leads in a term;
//   - a worker works under nothing except what was assigned to it;
//   - of two assignments of a partition, the one with the older LSN has ended before
//     the other begins.
func audit(t *testing.T, logs ...[]byte) (r report) {
	t.Helper()
	wrong := func(format string, args ...any) {
		r.problems = append(r.problems,
			fmt.Sprintf(format, args...))
	}
	spans, leaders := map[owned]*span{}, map[lsn.Term]cluster.NodeID{}
	var acts []line
	for _, log := range logs {
		for scanner := bufio.NewScanner(bytes.NewReader(log)); scanner.Scan(); {
			var l line
			if strings.Contains(scanner.Text(), `"lsn"`) || strings.Contains(scanner.Text(), `"leads"`) {
				require.NoError(t, json.Unmarshal(scanner.Bytes(), &l), scanner.Text())
			}
			of := owned{l.LSN, l.Partition}
			if l.Event == "assigned" {
				r.assigned++
				l.Term = l.LSN.Term
			}
			if leader, ok := leaders[l.Term]; ok && leader != l.Node && l.Term > 0 {
				wrong("both %s and %s lead in term %d", leader, l.Node, l.Term)
			}
			switch l.Event {
			case "leads":
				leaders[l.Term] = l.Node
			case "assigned":
				leaders[l.Term] = l.Node
				fallthrough
			case "kept":
				if s := spans[of]; s != nil && s.To != l.To {
					wrong("%s gives partition %d to %s and to %s", l.LSN, l.Partition, s.To, l.To)
				}
				spans[of] = &span{line: l}
			case "begun", "worked":
				acts = append(acts, l)
			}
		}
	}
	for _, act := range acts {
		s := spans[owned{act.LSN, act.Partition}]
		switch {
		case s == nil || s.To != act.Node:
			wrong("%s works on partition %d under %s, which is not its own", act.Node, act.Partition,
				act.LSN)
		case act.Event == "begun" && s.begun.IsZero(): // again: its process was started again
			s.begun = act.Time
		case act.Event == "begun":
		default:
			r.worked, s.last = r.worked+1, act.At
		}
	}
	older := map[int]*span{} // by partition: the assignment that ended last
	for _, s := range slices.SortedFunc(maps.Values(spans),
		func(a, b *span) int { return a.LSN.Compare(b.LSN) }) {
		old := older[s.Partition]
		if old != nil && !s.begun.IsZero() && s.begun.Before(old.last) {
			wrong("%s begins %s before %s ends", s, old.last.Sub(s.begun), old)
		}
		if old == nil || old.last.Before(s.last) {
			older[s.Partition] = s
		}
	}
	r.terms = len(leaders)
	return r
}

// The audit must find what it looks for.
func TestTheAuditFindsWhatMustNotBe(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	write := func(node, event, token string, to string) string {
		now = now.Add(time.Second)
		at := now.Format(time.RFC3339Nano)
		return fmt.Sprintf(`{"@timestamp":%q,"@message":%q,"node":%q,"partition":7,"lsn":%q,"to":%q,"at":%q}`+"\n",
			at, event, node, token, to, at)
	}
	begin := write("a", "assigned", "1.1", "b") + write("b", "begun", "1.1", "") +
		write("b", "worked", "1.1", "")
	second := write("a", "assigned", "1.2", "a") + write("a", "begun", "1.2", "")
	for log, want := range map[string]string{
		begin + second: "",
		begin + second + write("b", "worked", "1.1",
			""): "1.2 (partition 7, a) begins 1s before 1.1 (partition 7, b) ends",
		begin + write("c", "assigned", "1.3", "c"): "both a and c lead in term 1",
		begin + write("c", "kept", "1.1", "c"):     "1.1 gives partition 7 to b and to c",
		begin + write("c", "kept", "1.1", "b"):     "",
		begin + write("c", "worked", "1.1",
			""): "c works on partition 7 under 1.1, which is not its own",
	} {
		problems := audit(t, []byte(log)).problems
		require.Equal(t, want == "", len(problems) == 0)
		require.Contains(t, strings.Join(problems, "\n"), want)
	}
}
