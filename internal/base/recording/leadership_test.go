package recording

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var zero = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }

func change(node string, s int, leader string, term uint64, reason string) Record {
	return Record{Time: at(s), Node: node, Kind: Transition, Group: "g", Leader: leader, Term: term,
		Reason: reason, To: "FOLLOWER"}
}

func started(node string, s int) Record { return Record{Time: at(s), Node: node, Kind: Started} }

func TestLeadershipsAreMergedFromWhatNodesSaw(t *testing.T) {
	lead := func(leader string, term uint64, from, to int, reason, reasonBy, by string) Leadership {
		l := Leadership{Group: "g", Leader: leader, Term: term, From: at(from), Reason: reason,
			ReasonBy: reasonBy, Node: by}
		if to != 0 {
			l.To = at(to)
		}
		return l
	}
	for name, c := range map[string]struct {
		nodes [][]Record
		want  []Leadership
	}{
		"nothing": {nil, nil},
		"it goes on although one has lost it": {[][]Record{
			{started("a", 0), change("a", 1, "a", 1, "ELECTED")},
			{change("b", 2, "a", 1, "LEADER_FOUND"), change("b", 5, "", 1, "LEADER_NO_HEARTBEAT")},
		}, []Leadership{lead("a", 1, 1, 0, "", "", "a")}},
		"a leader that was paused gives its own reason, but ended when the others gave it up": {[][]Record{
			{change("a", 1, "a", 1, "ELECTED"), change("a", 30, "", 1, "LEASE_EXPIRED")},
			{change("b", 2, "a", 1, "LEADER_FOUND"), change("b", 5, "", 1, "LEADER_NO_HEARTBEAT"),
				change("b", 9, "b", 2, "ELECTED")},
			{change("c", 2, "a", 1, "LEADER_FOUND"), change("c", 6, "", 1, "LEADER_NO_HEARTBEAT"),
				change("c", 10, "b", 2, "LEADER_FOUND")},
		}, []Leadership{lead("a", 1, 1, 6, "LEASE_EXPIRED", "a", "a"), lead("b", 2, 9, 0, "", "", "b")}},
		"nobody saw the end of a leader that was paused": {[][]Record{
			{change("a", 1, "a", 1, "ELECTED"), change("a", 30, "", 1, "LEASE_EXPIRED")},
			{started("b", 6), change("b", 9, "b", 2, "ELECTED")},
		}, []Leadership{lead("a", 1, 1, 9, "LEASE_EXPIRED", "a", "a"), lead("b", 2, 9, 0, "", "", "b")}},
		"the next leader knows best when it began": {[][]Record{
			{change("a", 1, "a", 1, "ELECTED"), change("a", 30, "", 1, "LEASE_EXPIRED")},
			{started("b", 6), change("b", 12, "c", 2, "LEADER_FOUND")}, {change("c", 9, "c", 2, "ELECTED")},
		}, []Leadership{lead("a", 1, 1, 9, "LEASE_EXPIRED", "a", "a"), lead("c", 2, 9, 0, "", "", "c")}},
		"a leader that was stopped says so": {[][]Record{
			{change("a", 1, "a", 1, "ELECTED"), change("a", 5, "", 1, "STOPPED")},
			{change("b", 2, "a", 1, "LEADER_FOUND"), change("b", 5, "", 1, "TRANSFERRED")},
		}, []Leadership{lead("a", 1, 1, 5, "STOPPED", "a", "a")}},
		"only another can say how it ended": {[][]Record{
			{change("b", 2, "a", 1, "LEADER_FOUND"), change("b", 5, "", 1, "TRANSFERRED")},
		}, []Leadership{lead("a", 1, 2, 5, "TRANSFERRED", "b", "b")}},
		"a leader that was killed": {[][]Record{
			{change("a", 1, "a", 1, "ELECTED"), started("a", 20)},
			{change("b", 1, "a", 1, "LEADER_FOUND"), change("b", 4, "", 1, "LEADER_NO_HEARTBEAT"),
				change("b", 6, "a", 1, "LEADER_FOUND"), change("b", 9, "", 1, "LEADER_UNAVAILABLE")},
			{change("c", 10, "c", 2, "ELECTED")},
		}, []Leadership{lead("a", 1, 1, 9, "LEADER_UNAVAILABLE", "b", "a"),
			lead("c", 2, 10, 0, "", "", "c")}},
		"nobody knows how it ended": {[][]Record{
			{change("b", 1, "a", 1, "LEADER_FOUND"), started("b", 20), change("b", 25, "b", 2, "ELECTED")},
		}, []Leadership{lead("a", 1, 1, 20, "", "", "b"), lead("b", 2, 25, 0, "", "", "b")}},
	} {
		seen := []Leadership{{Group: "another", Leader: "a", Term: 1, From: at(3), Node: "a"}}
		for _, records := range c.nodes {
			seen = append(seen, Leaderships(records)...)
		}
		require.Equal(t, c.want, Merge("g", seen), name)
	}
}
