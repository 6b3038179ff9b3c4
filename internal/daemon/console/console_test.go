package console

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 345_000_000, time.Local)

func TestTransitionsAreLinesThatLineUp(t *testing.T) {
	var out strings.Builder
	p := New(&out)
	p.Transition(admin.Event{Time: noon, Node: "n1", From: "DORMANT", To: "FOLLOWER",
		Reason: "STARTED"})
	p.Transition(admin.Event{Time: noon, Node: "n1", From: "CANDIDATE", To: "LEADER",
		Reason: "ELECTED", Term: 7, Leader: "n1"})
	p.Transition(admin.Event{Time: noon, Node: "n10", From: "FOLLOWER", To: "FOLLOWER",
		Reason: "LEADER_FOUND", Term: 7, Leader: "n1", Peer: "n1"})
	p.Transition(admin.Event{Time: noon, Node: "n1", From: "LEADER", To: "FOLLOWER",
		Reason: "LEADER_PREEMPTED", Term: 8, Peer: "n10", Missed: 3})
	p.Transition(admin.Event{Time: noon, Node: "n2", From: "LEADER", To: "FOLLOWER",
		Reason: "TRANSFERRED", Term: 9, Peer: "n3"})
	p.Transition(admin.Event{Time: noon, Node: "n1", From: "FOLLOWER", To: "FOLLOWER",
		Reason: "TRANSFERRED", Term: 9, Peer: "n2"})
	p.Note(noon, "n1", "gone: %s", "killed")
	p.Say("a hint\n")
	require.Equal(t, strings.Join([]string{
		"12:00:00.345  n1  DORMANT -> FOLLOWER    term 0    STARTED",
		"12:00:00.345  n1  CANDIDATE -> LEADER    term 7    ELECTED",
		"12:00:00.345  n10  FOLLOWER               term 7    LEADER_FOUND n1",
		"12:00:00.345  n1   LEADER -> FOLLOWER     term 8    LEADER_PREEMPTED n10 (missed before: 3)",
		"12:00:00.345  n2   LEADER -> FOLLOWER     term 9    TRANSFERRED to n3",
		"12:00:00.345  n1   FOLLOWER               term 9    TRANSFERRED by n2",
		"12:00:00.345  n1   gone: killed",
		"a hint",
		"",
	}, "\n"), out.String())
}
