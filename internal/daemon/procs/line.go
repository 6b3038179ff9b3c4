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
)

// Line is one line of a process's output.
type Line struct {
	Node    string
	Text    string // the line as it was written
	Time    time.Time
	Level   string // trace, debug, info, warn or error; "" if it is no log line
	Message string // "" if it is no log line
	Detail  string // the fields that go with the message, for people

	event admin.Event // if it tells of a transition
}

// Transition returns the transition that the line tells of; ok is false if it tells of
// something else.
func (l Line) Transition() (e admin.Event, ok bool) { return l.event, l.Message == "transition" }

// parseLine reads a line as hclog writes JSON.
func parseLine(node string, text []byte) Line {
	line := Line{Node: node, Text: string(text), Time: time.Now()}
	var log struct {
		Level   string    `json:"@level"`
		Message string    `json:"@message"`
		Time    time.Time `json:"@timestamp"`
	}
	if err := json.Unmarshal(text, &log); err != nil || log.Message == "" {
		return line
	}
	line.Time, line.Level, line.Message = log.Time, log.Level, log.Message
	if line.Message == "transition" && json.Unmarshal(text, &line.event) == nil {
		line.event.Time, line.event.Node = log.Time, cluster.NodeID(node)
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a large term must not become 1e+06
	_ = dec.Decode(&fields)
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if !strings.HasPrefix(k, "@") && k != "node" {
			parts = append(parts, fmt.Sprintf("%s=%v", k, fields[k]))
		}
	}
	line.Detail = strings.Join(parts, " ")
	return line
}
