package scenario

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// builder fills in a Scenario from the file's values.
type builder struct {
	*report
	s *Scenario
}

var topKeys = []string{
	"name", "about", "source", "nodes", "profile", "scouting", "rule", "elector", "network",
	"begin", "duration", "seed", "simulated_only", "timeline", "expect",
}

// build reads everything, in an order in which each part needs those before.
func (b *builder) build(root *value) {
	o := b.object(root, "a scenario", topKeys...)
	b.texts(o)
	b.nodes(o)
	b.election(o)
	b.s.Network = Link{Delay: time.Millisecond}
	if v := o.get("network"); v != nil {
		b.link(b.object(v, "network", linkKeys...), &b.s.Network)
	}
	b.begin(o)
	b.timeline(o)
	b.expectations(o)
	if b.s.SimulatedOnly == "" {
		b.s.SimulatedOnly = b.s.unreal()
	}
}

func (b *builder) texts(o object) {
	s := b.s
	for _, required := range []string{"name", "nodes", "duration"} {
		if !o.has(required) {
			o.incomplete("%q is missing: a scenario has a name, nodes and a duration", required)
		}
	}
	s.Seed = 1
	o.line("name", &s.Name)
	o.line("about", &s.About)
	o.line("source", &s.Source)
	o.line("simulated_only", &s.SimulatedOnly)
	o.positive("duration", &s.Duration)
	read(o, "seed", &s.Seed, parseSeed)
}

var linkKeys = []string{"delay", "jitter", "loss", "duplicate", "reorder"}

// link reads how a link behaves; what is left out stays as it is in l.
func (b *builder) link(o object, l *Link) {
	o.duration("delay", &l.Delay)
	o.duration("jitter", &l.Jitter)
	o.share("loss", &l.Loss)
	o.share("duplicate", &l.Duplicate)
	o.share("reorder", &l.Reorder)
}

var beginKeys = []string{"leader", "term"}

func (b *builder) begin(o object) {
	v := o.get("begin")
	if v == nil {
		return
	}
	in := b.object(v, "begin", beginKeys...)
	b.s.Begin.Term = 1
	in.term("term", &b.s.Begin.Term)
	leader := in.get("leader")
	if leader == nil {
		in.incomplete("begin has no leader: name one, or leave begin out for a cold start")
		return
	}
	if id, ok := b.candidate(leader); ok {
		b.s.Begin.Leader = id
		b.established(leader)
	}
}

// established reports why the leader could not be elected before time 0.
func (b *builder) established(leader *value) {
	present := 0
	for _, n := range b.s.Nodes {
		if n.Absent {
			continue
		}
		if !n.Observer {
			present++
		}
		if n.Term != 0 {
			b.at(leader, "begin puts all nodes that are there in its term: %s must have no term of its own or be absent", n.ID)
		}
	}
	if b.s.node(b.s.Begin.Leader).Absent {
		b.at(leader, "%s is absent at first: begin with a leader that is there", b.s.Begin.Leader)
	}
	if need := b.s.Election.QuorumSize(); present < need {
		b.at(leader, "%s cannot have been elected: that takes %d voters, and %d are there at first", b.s.Begin.Leader, need, present)
	}
}

// Config returns the elector's configuration of one of the scenario's nodes.
func (s *Scenario) Config(n Node) elector.Config {
	c := s.Election
	c.Self, c.Priority, c.NotCandidate = n.ID, n.Priority, n.NotCandidate
	return c
}
