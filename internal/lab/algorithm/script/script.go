// Package script plays the machines of an algorithm by hand, for tests that tell a story:
// each line of a script is something that happens, and what follows from it is written
// line by line. Nothing arrives unless the script delivers it; no link fails by itself.
package script

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Script is a cluster between two lines of a script. All links are up. A disk is durable
// at once, unless the script says hold-disks.
type Script struct {
	algorithm algorithm.Algorithm
	now       time.Duration
	nodes     []*node
	sent      []message // not delivered yet, oldest first
	cuts      []message // ways on which all is lost; their bodies are nil
	hidden    []string  // names of messages that are not written
	counts    map[string]int
	holdDisks bool
	out       strings.Builder
}

type node struct {
	id      algorithm.NodeID
	config  algorithm.Config
	machine algorithm.Machine // nil while it does not run
	wake    algorithm.Time
	view    algorithm.View
	disk    algorithm.Disk
	writing []algorithm.Effects // that hold-disks holds
	entropy uint64
	paused  bool
	rate    float64 // of its clock; 0 means 1
}

// at is the reading of the node's clock at a moment, and when is the first moment at which
// it reads that.
func (n *node) at(moment time.Duration) algorithm.Time {
	return algorithm.Time(float64(moment) * cmp.Or(n.rate, 1))
}

func (n *node) when(reading algorithm.Time) time.Duration {
	if reading == elector.Never {
		return time.Duration(reading)
	}
	return time.Duration(math.Ceil(float64(reading) / cmp.Or(n.rate, 1)))
}

type message struct {
	from, to algorithm.NodeID
	body     algorithm.Message
}

// New makes a cluster of voters of those names, the preferred ones first, that do not run
// yet. An algorithm with a store gets one, which runs.
func New(a algorithm.Algorithm, timing elector.Timing, names ...algorithm.NodeID) *Script {
	s := &Script{algorithm: a, counts: map[string]int{}}
	for _, id := range names {
		s.nodes = append(s.nodes, &node{id: id, entropy: 1 << 63, config: algorithm.Config{
			Elector: elector.Config{Self: id, Voters: slices.Sorted(slices.Values(names)), Timing: timing},
			Order:   names,
		}})
	}
	if a.Store != nil {
		s.nodes = append(s.nodes, &node{id: algorithm.StoreNode, config: s.nodes[0].config})
		s.start(s.nodes[len(s.nodes)-1])
	}
	return s
}

// Play does what the lines say, and returns what followed:
//
//	start a b              nodes begin to take part; * is all that do not run, here and below
//	crash a                nodes are gone; their disks stay
//	stop a                 nodes are told to stop
//	pause a                nodes do nothing, and what is sent to them waits
//	resume a               they go on
//	clock a 0.5            from the beginning, a's clock runs at that rate
//	priority a 2           likewise, a's elector.Config.Priority is that
//	advance 1s             time passes; machines that want a tick get it
//	run 1s                 likewise, and all messages arrive as soon as they are sent
//	deliver a b            the oldest message from a to b arrives; * is any
//	drop a b               all messages from a to b are lost
//	settle                 all messages arrive, and those that follow, until there are none
//	cut a b                what a sends to b from now on is lost; * is any, here and below
//	heal a b               it is not any more
//	link-down a b          a hears that its link to b is gone, and b that its link to a is: by
//	                       silence, but by FIN from who does not run
//	link-up a b            both hear that there is a link
//	entropy 0.5 a b        what nodes draw from now on, from 0 up to 1; without names: all
//	transfer a b           a is asked to hand over to b; * is whom it likes
//	hold-disks             nothing is durable until the line durable
//	durable a              the oldest write of a is durable
//	hide LEAD persists     messages of that name, and writes, are not written from now on
//	count                  how many messages were sent since the last count, by name
//	views                  what each node believes, and until when its lease runs
//	messages               what is under way
func (s *Script) Play(lines string) string {
	s.out.Reset()
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := s.do(words[0], words[1:]); err != nil {
			fmt.Fprintf(&s.out, "%s: %v\n", strings.TrimSpace(line), err)
		}
	}
	return s.out.String()
}

func (s *Script) do(verb string, args []string) error {
	switch verb {
	case "start", "crash", "stop", "durable", "pause", "resume":
		return s.each(args, map[string]func(*node){
			"start": s.start, "durable": s.durable,
			"stop":  func(n *node) { s.step(n, elector.Stop{}) },
			"crash": func(n *node) { n.machine, n.writing, n.paused = nil, nil, false },
			"pause": func(n *node) { n.paused = true }, "resume": func(n *node) { n.paused = false },
		}[verb])
	case "advance", "run":
		d, err := time.ParseDuration(strings.Join(args, ""))
		if err != nil {
			return err
		}
		return s.advance(d, verb == "run")
	case "settle":
		return s.settle()
	case "entropy":
		return s.share(strings.Join(args[:min(1, len(args))], ""), args[min(1, len(args)):],
			func(n *node, share float64) { n.entropy = uint64(share * (1 << 63) * 2) })
	case "hide":
		s.hidden = append(s.hidden, args...)
		return nil
	case "count":
		for _, name := range slices.Sorted(maps.Keys(s.counts)) {
			fmt.Fprintf(&s.out, "%d %s\n", s.counts[name], name)
		}
		clear(s.counts)
		return nil
	case "hold-disks":
		s.holdDisks = true
		return nil
	case "views":
		for _, n := range s.nodes {
			if n.machine != nil && n.id != algorithm.StoreNode {
				s.say(n, "%s%s", viewText(n.view), s.leaseText(n))
			}
		}
		return nil
	case "messages":
		for _, m := range s.sent {
			fmt.Fprintf(&s.out, "%s -> %s: %s\n", m.from, m.to, algorithm.Text(m.body))
		}
		return nil
	}
	switch {
	case len(args) != 2:
		return fmt.Errorf("unknown, or it needs two nodes")
	case verb == "clock":
		return s.share(args[1], args[:1], func(n *node, rate float64) { n.rate = rate })
	case verb == "priority":
		return s.share(args[1], args[:1], func(n *node, p float64) { n.config.Elector.Priority = int(p) })
	}
	return s.between(verb, algorithm.NodeID(args[0]), algorithm.NodeID(args[1]))
}

// between does what concerns two nodes, or all pairs that are meant by *.
func (s *Script) between(verb string, from, to algorithm.NodeID) error {
	fits := func(m message) bool {
		return (from == "*" || m.from == from) && (to == "*" || m.to == to)
	}
	switch verb {
	case "deliver":
		i := slices.IndexFunc(s.sent, fits)
		if i < 0 {
			return fmt.Errorf("there is no such message")
		}
		s.deliver(i)
	case "drop":
		s.sent = slices.DeleteFunc(s.sent, fits)
	case "transfer":
		s.step(s.find(from), elector.Transfer{To: algorithm.NodeID(strings.TrimSuffix(string(to), "*"))})
	case "heal":
		s.cuts = slices.DeleteFunc(s.cuts, fits)
	case "cut", "link-down", "link-up":
		for _, a := range s.nodes {
			for _, b := range s.nodes {
				way, back := message{from: a.id, to: b.id}, message{from: b.id, to: a.id}
				if a != b && (fits(way) || verb != "cut" && fits(back)) {
					s.change(verb, way, a, b)
				}
			}
		}
	default:
		return fmt.Errorf("there is no such command")
	}
	return nil
}

// change cuts the way from a to b, or lets a hear what its link to b is.
func (s *Script) change(verb string, way message, a, b *node) {
	switch {
	case verb == "cut":
		s.cuts = append(s.cuts, way)
	case verb == "link-down":
		why := elector.EvidenceTimeout
		if b.machine == nil {
			why = elector.EvidenceEOF
		}
		s.step(a, elector.LinkDown{Peer: b.id, Evidence: why})
	case b.machine != nil:
		s.step(a, elector.LinkUp{Peer: b.id})
	}
}

// share sets a number of the nodes of those names, or of all nodes if no name is given.
func (s *Script) share(text string, names []string, set func(*node, float64)) error {
	if len(names) == 0 {
		names = []string{"*"}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	return s.each(names, func(n *node) { set(n, number) })
}

// each does something to the nodes of those names.
func (s *Script) each(names []string, do func(*node)) error {
	for _, n := range s.nodes {
		if slices.Contains(names, string(n.id)) || len(names) == 1 && names[0] == "*" &&
			n.id != algorithm.StoreNode {
			do(n)
		}
	}
	for _, name := range names {
		if name != "*" && s.find(algorithm.NodeID(name)) == nil {
			return fmt.Errorf("there is no node %s", name)
		}
	}
	return nil
}

func (s *Script) find(id algorithm.NodeID) *node {
	if i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.id == id }); i >= 0 {
		return s.nodes[i]
	}
	return nil
}

func (s *Script) start(n *node) {
	if n.machine != nil {
		return
	}
	create := s.algorithm.New
	if n.id == algorithm.StoreNode {
		create = s.algorithm.Store
	}
	n.machine, n.view = create(n.config), algorithm.View{}
	s.step(n, algorithm.Start{Disk: n.disk, Clock: algorithm.Time(s.now)})
}

func (s *Script) durable(n *node) {
	if len(n.writing) == 0 {
		return
	}
	w := n.writing[0]
	n.writing, n.disk = n.writing[1:], w.Persist
	s.send(n, w.Durable)
	s.step(n, elector.Persisted{})
}

// advance lets time pass, and ticks machines in the order in which they want it. Messages
// arrive at once if arrive says so.
func (s *Script) advance(d time.Duration, arrive bool) error {
	end := s.now + d
	for budget := 100_000; budget > 0; budget-- {
		if arrive {
			if err := s.settle(); err != nil {
				return err
			}
		}
		var next *node
		for _, n := range s.nodes {
			if n.machine != nil && !n.paused && (next == nil || n.when(n.wake) < next.when(next.wake)) {
				next = n
			}
		}
		if next == nil || next.when(next.wake) > end {
			break
		}
		s.now = max(s.now, next.when(next.wake))
		s.step(next, elector.Tick{})
	}
	s.now = end
	return nil
}

// settle delivers until there is nothing to deliver.
func (s *Script) settle() error {
	for range 10_000 {
		i := slices.IndexFunc(s.sent, func(m message) bool { return !s.find(m.to).paused })
		if i < 0 {
			return nil
		}
		s.deliver(i)
	}
	return fmt.Errorf("messages without end")
}

// deliver lets the message of that index arrive; at a node that does not run it is lost.
func (s *Script) deliver(i int) {
	m := s.sent[i]
	s.sent = slices.Delete(s.sent, i, i+1)
	s.step(s.find(m.to), algorithm.Received{From: m.from, Message: m.body})
}

// step does nothing to a node that does not run.
func (s *Script) step(n *node, in algorithm.Input) {
	if n == nil || n.machine == nil {
		return
	}
	eff := n.machine.Step(n.at(s.now), n.entropy, in)
	n.wake = eff.Wake
	if view := n.machine.View(); view != n.view {
		s.say(n, "%s; %s", viewText(view), eff.Why)
		n.view = view
	}
	s.send(n, eff.Messages)
	if eff.Persist == nil {
		s.send(n, eff.Durable)
		return
	}
	if !slices.Contains(s.hidden, "persists") {
		s.say(n, "persists %v", eff.Persist)
	}
	eff.Durable = slices.Clone(eff.Durable)
	n.writing = append(n.writing, eff)
	if !s.holdDisks {
		s.durable(n)
	}
}

func (s *Script) send(n *node, envelopes []algorithm.Envelope) {
	for _, e := range envelopes {
		if !slices.Contains(s.hidden, algorithm.Name(e.Message)) {
			s.say(n, "-> %s: %s", e.To, algorithm.Text(e.Message))
		}
		for _, to := range s.nodes {
			meant := e.To == to.id || e.To == elector.AllMembers && to.id != algorithm.StoreNode
			if !meant || to == n {
				continue
			}
			s.counts[algorithm.Name(e.Message)]++
			if !slices.Contains(s.cuts, message{from: n.id, to: to.id}) {
				s.sent = append(s.sent, message{n.id, to.id, e.Message})
			}
		}
	}
}

func (s *Script) say(n *node, format string, args ...any) {
	fmt.Fprintf(&s.out, "%s %s %s\n", s.now, n.id, fmt.Sprintf(format, args...))
}

// leaseText is the end of a leader's lease, on its own clock.
func (s *Script) leaseText(n *node) string {
	if !s.algorithm.Leased || n.view.Role != elector.Leader {
		return ""
	}
	if lease := n.machine.(algorithm.Leased).Lease(); lease != (elector.Lease{}) {
		return fmt.Sprintf(" lease=%s", lease.End)
	}
	return " without a lease"
}

func viewText(v algorithm.View) string {
	text := v.Role.String()
	if v.Leader != "" {
		text += " leader=" + string(v.Leader)
	}
	if v.Term != 0 {
		text += fmt.Sprintf(" term=%d", v.Term)
	}
	return text
}
