package clustertest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

const (
	storyBuffer = 256 // events of one node at one moment
	storyLength = 200 // lines that are kept, the newest
)

// story records what happened to a cluster, for the log of a failed test.
type story struct {
	mu      sync.Mutex
	began   time.Time
	lines   []string
	dropped int
}

func newStory() *story { return &story{began: time.Now()} }

// add records an event of this moment.
func (s *story) add(format string, args ...any) { s.at(time.Now(), format, args...) }

func (s *story) at(when time.Time, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	s.lines = append(s.lines, fmt.Sprintf("  %9s  %s", round(when.Sub(s.began)), what))
	if len(s.lines) > storyLength {
		s.lines = s.lines[1:]
		s.dropped++
	}
}

// follow records a node's transitions until it is closed.
func (s *story) follow(id cluster.NodeID, events *cluster.Subscription) {
	for e := range events.Events() {
		election := ""
		if e.Group != cluster.DefaultGroup {
			election = fmt.Sprintf(" in election %q", e.Group)
		}
		s.at(e.Time, "%s%s: %s", id, election, e.Transition)
	}
}

// String returns a line for each event, with the virtual time since the cluster's start.
func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.dropped > 0 {
		fmt.Fprintf(&b, "  (%d lines before that)\n", s.dropped)
	}
	for _, line := range s.lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Explain describes the cluster: whether each node runs, how each of its elections stands,
// and which links are cut.
func (c *Cluster) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s:\n", round(time.Since(c.story.began)))
	for _, id := range c.ids {
		fmt.Fprintf(&b, "  %s  %s\n", id, c.members[id].explain())
	}
	if cuts := c.cuts(); len(cuts) > 0 {
		fmt.Fprintf(&b, "  cut: %s\n", strings.Join(cuts, ", "))
	}
	return b.String()
}

// news returns the result of Explain, or "" if the log has the same text already.
func (c *Cluster) news() string {
	now := c.Explain()
	if now == c.told {
		return ""
	}
	c.told = now
	return now
}

// explain describes a node. A paused node cannot be asked for its status.
func (m *member) explain() string {
	if m.state != running {
		return fmt.Sprintf("%s for %s", m.state, round(time.Since(m.since)))
	}
	var text string
	for _, g := range m.node.Status().Groups {
		if g.Group != cluster.DefaultGroup {
			text += fmt.Sprintf("; %s: ", g.Group)
		}
		text += fmt.Sprintf("%s in term %d: %s", g.Role, g.Term, g.Explanation)
	}
	if err := m.node.Err(); err != nil {
		text += fmt.Sprintf(" (%v)", err)
	}
	return text
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
