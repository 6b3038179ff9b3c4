package ble_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ble"
)

// TestRound lets the first server of three hear messages of a round in which no script can put
// them. What it answers afterwards shows what the end of the round made of them.
func TestRound(t *testing.T) {
	type heard struct {
		from algorithm.NodeID
		algorithm.Message
	}
	reply := func(n, pid, ln, lpid uint64, happy bool) ble.HBReply {
		return ble.HBReply{Round: 1, Ballot: ble.Ballot{N: n, Pid: pid},
			Leader: ble.Ballot{N: ln, Pid: lpid}, Happy: happy}
	}
	prepare := func(n, pid uint64) ble.Prepare {
		return ble.Prepare{Ballot: ble.Ballot{N: n, Pid: pid}}
	}
	for _, test := range []struct {
		name   string
		hears  []heard
		own    uint64 // N of the ballot that it has then
		leader ble.Ballot
		happy  bool
	}{
		{"a quorum follows", []heard{{"b", reply(1, 2, 1, 3, true)}}, 1, ble.Ballot{N: 1, Pid: 3}, true},
		{"nobody replies", nil, 1, ble.Ballot{N: 1, Pid: 3}, false},
		{"only the first reply of a server counts", []heard{{"b", reply(1, 2, 2, 2, false)},
			{"b", reply(1, 2, 1, 1, false)}}, 2, ble.Ballot{N: 2, Pid: 3}, true},
		{"a follower is past its ballot, and unhappy", []heard{{"b", reply(1, 2, 2, 2, false)}},
			2, ble.Ballot{N: 2, Pid: 3}, true},
		{"and happy", []heard{{"b", reply(1, 2, 2, 2, true)}}, 1, ble.Ballot{N: 1, Pid: 3}, true},
		{"a higher ballot leads, which says that it is happy", []heard{{"b", reply(2, 2, 2, 2, true)}},
			1, ble.Ballot{N: 2, Pid: 2}, true},
		{"and which does not", []heard{{"b", reply(2, 2, 2, 2, false)}},
			3, ble.Ballot{N: 3, Pid: 3}, true},
		{"another's happiness is not the leader's", []heard{{"b", reply(2, 2, 2, 2, false)},
			{"c", reply(1, 1, 2, 2, true)}}, 1, ble.Ballot{N: 2, Pid: 2}, false},
		{"a promise is above", []heard{{"c", prepare(4, 1)}}, 1, ble.Ballot{N: 4, Pid: 1}, true},
		{"a later one is below that", []heard{{"c", prepare(4, 1)}, {"b", prepare(3, 2)}},
			1, ble.Ballot{N: 4, Pid: 1}, true},
	} {
		cfg := elector.Config{Self: "a", Voters: []elector.NodeID{"a", "b", "c"}}
		cfg.Timing = elector.Article()
		m := ble.BLE.New(algorithm.Config{Elector: cfg, Order: cfg.Voters})
		end := m.Step(0, 0, algorithm.Start{}).Wake
		for _, h := range test.hears {
			m.Step(1, 0, algorithm.Received{From: h.from, Message: h.Message})
		}
		m.Step(end, 0, elector.Tick{})
		says := m.Step(end, 0, algorithm.Received{From: "b", Message: ble.HBRequest{}}).Messages
		require.Equal(t, ble.HBReply{Ballot: ble.Ballot{N: test.own, Pid: 3}, Leader: test.leader,
			Happy: test.happy}, says[len(says)-1].Message, test.name)
	}
}
