package report

import (
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/lsn"
)

// The events of the form; the package comment documents them. Every time that
// may be absent is a pointer, since 0 is a time.
type (
	head struct {
		Type string `json:"type"`
		Run  int    `json:"run"`
	}
	jsonNode struct {
		Node      history.NodeID `json:"node"`
		Voter     bool           `json:"voter"`
		Candidate bool           `json:"candidate"`
	}
	jsonRun struct {
		head
		Scenario  string     `json:"scenario"`
		Variant   string     `json:"variant,omitempty"`
		About     string     `json:"about,omitempty"`
		Mode      string     `json:"mode"`
		Seed      uint64     `json:"seed"`
		DurationS float64    `json:"duration_s"`
		Quorum    int        `json:"quorum"`
		NoLease   bool       `json:"no_lease"`
		Nodes     []jsonNode `json:"nodes"`
	}
	jsonTransition struct {
		head
		AtS    float64        `json:"at_s"`
		Node   history.NodeID `json:"node"`
		From   string         `json:"from"`
		To     string         `json:"to"`
		Reason string         `json:"reason"`
		Term   lsn.Term       `json:"term"`
		Leader history.NodeID `json:"leader,omitempty"`
		Peer   history.NodeID `json:"peer,omitempty"`
	}
	jsonCut struct {
		head
		AtS    float64        `json:"at_s"`
		UntilS *float64       `json:"until_s,omitempty"`
		From   history.NodeID `json:"from"`
		To     history.NodeID `json:"to"`
	}
	jsonMark struct {
		head
		AtS  float64 `json:"at_s"`
		Text string  `json:"text"`
		Note string  `json:"note,omitempty"`
	}
	jsonMessage struct {
		head
		AtS       float64        `json:"at_s"`
		ReceivedS *float64       `json:"received_s,omitempty"`
		From      history.NodeID `json:"from"`
		To        history.NodeID `json:"to"`
		Kind      string         `json:"kind"`
		Text      string         `json:"text"`
	}
	jsonProblem struct {
		head
		Kind string `json:"kind"`
		Text string `json:"text"`
	}
	jsonVerdict struct {
		head
		Held  bool    `json:"held"`
		Text  string  `json:"text"`
		Seen  string  `json:"seen,omitempty"`
		AtS   float64 `json:"at_s"`
		FromS float64 `json:"from_s"`
		ToS   float64 `json:"to_s"`
	}
	jsonSummary struct {
		head
		Held          bool      `json:"held"`
		LeaderChanges int       `json:"leader_changes"`
		Demotions     int       `json:"needless_demotions"`
		LeaderlessS   float64   `json:"leaderless_s"`
		Availability  float64   `json:"availability"`
		MaxTerm       lsn.Term  `json:"max_term"`
		Messages      int       `json:"messages"`
		FailoversS    []float64 `json:"failovers_s"`
	}
)
