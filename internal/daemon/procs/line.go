package procs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/lsn"
)

// Line is one line of a process's output.
type Line struct {
	Node    string
	Text    string // the line as it was written
	Time    time.Time
	Level   string // trace, debug, info, warn or error; "" if it is no log line
	Message string // "" if it is no log line
	Detail  string // the fields that go with the message, for people

	From, To, Reason, Group string // of a transition
	Term                    lsn.Term
	Leader, Peer            cluster.NodeID
}

// logLine is how hclog writes JSON.
type logLine struct {
	Level   string         `json:"@level"`
	Message string         `json:"@message"`
	Time    time.Time      `json:"@timestamp"`
	From    string         `json:"from"`
	To      string         `json:"to"`
	Reason  string         `json:"reason"`
	Group   string         `json:"group"`
	Term    lsn.Term       `json:"term"`
	Leader  cluster.NodeID `json:"leader"`
	Peer    cluster.NodeID `json:"peer"`
}

func parseLine(node string, text []byte) Line {
	line := Line{Node: node, Text: string(text), Time: time.Now()}
	var l logLine
	if err := json.Unmarshal(text, &l); err != nil || l.Message == "" {
		return line
	}
	line.Time, line.Level, line.Message = l.Time, l.Level, l.Message
	line.From, line.To, line.Reason, line.Group = l.From, l.To, l.Reason, l.Group
	line.Term, line.Leader, line.Peer = l.Term, l.Leader, l.Peer
	line.Detail = detail(text)
	return line
}

// detail lists the fields of a log line that hclog did not add itself.
func detail(text []byte) string {
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a large term must not become 1e+06
	if dec.Decode(&fields) != nil {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if !strings.HasPrefix(k, "@") && k != "node" {
			parts = append(parts, fmt.Sprintf("%s=%v", k, fields[k]))
		}
	}
	return strings.Join(parts, " ")
}

// Transition returns the transition that the line tells of; ok is false if it
// tells of something else.
func (l Line) Transition() (e admin.Event, ok bool) {
	return admin.Event{
		Time: l.Time, Node: cluster.NodeID(l.Node), Group: l.Group, From: l.From, To: l.To,
		Reason: l.Reason, Term: l.Term, Leader: l.Leader, Peer: l.Peer,
	}, l.Message == "transition"
}
