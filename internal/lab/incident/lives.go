package incident

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// life is the time of one process, or a part of it between two pauses.
type life struct {
	from, to time.Time
	started  bool   // from is the start of a process
	ended    string // crash, stop or pause; "" while it goes on
	why      string // what the end follows from
	wiped    bool   // it started on an empty directory
}

// forever is the end of what goes on.
var forever = time.Unix(1<<40, 0)

// soon is within how long two nodes see the same thing happen.
const soon = time.Second

// dialTime is about how long after both ends can speak the link is up: half of the longest
// wait of the simulator.
const dialTime = 250 * time.Millisecond

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func earlier(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

func later(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// findLives finds out when each process ran, and adds the steps that follow.
func (in *Incident) findLives() {
	for _, node := range in.nodes {
		in.lives[node] = in.livesOf(in.source(node))
		for i, l := range in.lives[node] {
			on := []string{node}
			switch {
			case l.started:
				in.all = append(in.all, Step{At: l.from, Do: "restart", Nodes: on, Wipe: l.wiped,
					Why: node + " started"})
			case i > 0:
				in.all = append(in.all, Step{At: l.from, Do: "resume", Nodes: on, Why: node + " went on"})
			}
			if l.ended != "" {
				in.all = append(in.all, Step{At: l.to, Do: l.ended, Nodes: on, Why: l.why})
			}
		}
	}
}

// livesOf are the lives of a node.
func (in *Incident) livesOf(s *Source) (all []life) {
	for i := range s.Records {
		r := &s.Records[i]
		if i == 0 || r.Boot != s.Records[i-1].Boot {
			started, from := r.Kind == recording.Started, r.Time
			if i > 0 {
				before := &all[len(all)-1]
				in.endProcess(s, before, &s.Records[i-1], r.Time)
				from = later(from, before.to)
			}
			all = append(all, life{from: from, to: forever, started: started,
				wiped: i == 0 && started && in.seenBefore(r)})
		}
		now := &all[len(all)-1]
		left := r.Kind == recording.Transition && r.Group == in.Group && r.To == "DORMANT"
		switch {
		case left, r.Kind == recording.Ended && now.ended == "":
			now.to, now.ended, now.why = r.Time, "stop", s.Node+" ended in good order"
		case now.ended == "" && in.held(r):
			began := r.Time.Add(-(seconds(r.Seconds) + atMost(r)) / 2)
			if began.After(now.from) {
				now.to, now.ended = began, "pause"
				now.why = fmt.Sprintf("%s did nothing for %.3g s", s.Node, r.Time.Sub(began).Seconds())
				all = append(all, life{from: r.Time, to: forever})
			}
		}
	}
	if last := len(s.Records) - 1; last >= 0 && !s.Alive {
		in.endProcess(s, &all[len(all)-1], &s.Records[last], time.Time{})
	}
	return all
}

// held reports whether a record says that its node did nothing for long enough to matter.
func (in *Incident) held(r *recording.Record) bool {
	return r.Kind == recording.Held && seconds(r.Seconds) >= in.period
}

// atMost is the longest that the node of a Held did nothing.
func atMost(r *recording.Record) time.Duration { return seconds(max(r.AtMost, r.Seconds)) }

// seenBefore reports whether another node has met a process of that name on another data
// directory, before this first start of a recording.
func (in *Incident) seenBefore(start *recording.Record) bool {
	return slices.ContainsFunc(in.records, func(r recording.Record) bool {
		return r.Kind == recording.LinkUp && r.Peer == start.Node && r.Identity != start.Identity &&
			r.Time.Before(start.Time)
	})
}

// endProcess finds out when a process ended that did not say so: after its last record, and
// after others last saw it work, and before the next start, which is zero if there was none.
func (in *Incident) endProcess(s *Source, l *life, final *recording.Record, next time.Time) {
	if l.ended != "" {
		return
	}
	before := next
	if next.IsZero() {
		before = in.To
	}
	last := in.lastSeen(final, before)
	after := last
	if !s.bySight {
		after = last.Add(-sameMoment) // by another clock than that of those who lost it
	}
	end, why := in.lossOf(s.Node, after, before.Add(soon))
	switch {
	case !end.IsZero():
	case next.IsZero() && s.bySight:
		end, why = last, "all have lost it"
	case next.IsZero():
		in.doubt("%s does not answer, but nobody has lost it: it is taken to run", s.Node)
		return
	default:
		end, why = next.Add(-soon), "it started again, and nobody saw when it had ended"
	}
	l.to, l.ended, l.why = later(end, last), "crash", s.Node+" ended without a word: "+why
}

// lastSeen is the last moment at which the process of a final record surely ran: that of the
// record, or a later one, when another node made a link to it or began to follow it.
func (in *Incident) lastSeen(final *recording.Record, before time.Time) time.Time {
	last := final.Time
	for _, r := range in.records {
		linked := r.Kind == recording.LinkUp && r.Peer == final.Node && r.PeerBoot == final.Boot
		followed := r.Kind == recording.Transition && r.Leader == final.Node && r.Node != final.Node
		if (linked || followed) && r.Time.Before(before) && !in.heldUp(r.Node, r.Time) {
			last = later(last, r.Time)
		}
	}
	return last
}

// lossOf is when the others lost a node between two moments; zero if they did not. Of what
// weighs most the first end of a connection counts, or the end of the last sign of life.
func (in *Incident) lossOf(node string, after, before time.Time) (at time.Time, why string) {
	heaviest := nothing
	for _, r := range in.records {
		if r.Peer != node || r.Time.Before(after) || r.Time.After(before) {
			continue
		}
		lost, weight := in.evidence(&r)
		better := lost.After(at)
		if weight == streamEnd {
			better = lost.Before(at)
		}
		if weight > heaviest || weight == heaviest && weight > nothing && better {
			heaviest, at = weight, lost
			why = fmt.Sprintf("%s lost the link (%s)", r.Node, r.Why)
		}
	}
	return at, why
}

// How much evidence of the end of a process weighs.
const (
	nothing   = iota // one end closed the link, or a node heard nothing that did not listen
	farewell         // one end closed the link, and the node's own recording is missing
	unheard          // a node that listened heard nothing
	streamEnd        // a kernel ends the connections of a dead process
)

// evidence is when the process at the other end of a link ended, if it did, by a record of
// this end, and how much that weighs.
func (in *Incident) evidence(r *recording.Record) (at time.Time, weight int) {
	switch {
	case r.Kind == recording.Died && r.Why != elector.ProofReincarnated.String():
		return r.Time, streamEnd
	case r.Kind != recording.LinkDown:
		return r.Time, nothing
	case r.Why == "goodbye", r.Why == "local":
		if in.source(r.Peer).bySight {
			return r.Time, farewell
		}
		return r.Time, nothing
	case r.Why != "timeout":
		return r.Time, streamEnd
	case in.heldUp(r.Node, r.Time):
		return r.Time, nothing
	}
	return r.Time.Add(-in.silence), unheard
}

// heldUp reports whether a node was held up at a moment, or right before it. Of its peers
// it knows nothing then: it did not listen, and what it reads first is old.
func (in *Incident) heldUp(node string, at time.Time) bool {
	return slices.ContainsFunc(in.source(node).Records, func(r recording.Record) bool {
		return in.held(&r) && !at.Before(r.Time.Add(-atMost(&r))) && !at.After(r.Time.Add(soon))
	})
}

// bySight is the source of a node without a recording: its starts, as the others saw them. It
// runs at the end if any of them has a link to it. If it came back as the same process it was
// cut off or paused, which the links tell.
func (in *Incident) bySight(node string) Source {
	s, linked := Source{Node: node, bySight: true}, map[string]bool{}
	for _, r := range in.records {
		if r.Peer != node || r.Kind != recording.LinkUp && r.Kind != recording.LinkDown {
			continue
		}
		linked[r.Node] = r.Kind == recording.LinkUp
		start := recording.Record{Node: node, Kind: recording.Started, Boot: r.PeerBoot,
			Identity: r.Identity, Time: r.Time.Add(-dialTime)}
		switch n := len(s.Records); {
		case n == 0 && !linked[r.Node]:
			start.Kind, start.Time = "", r.Time.Add(-time.Hour) // it ran before all records
			s.Records = append(s.Records, start)
		case linked[r.Node] && (n == 0 || s.Records[n-1].Boot != r.PeerBoot):
			s.Records = append(s.Records, start)
		}
	}
	s.Alive = slices.Contains(slices.Collect(maps.Values(linked)), true)
	return s
}

// worked reports whether a node ran, and was not paused, all the time between two moments.
func (in *Incident) worked(node string, from, to time.Time) bool {
	return slices.ContainsFunc(in.lives[node], func(l life) bool {
		return !from.Before(l.from) && !to.After(l.to)
	})
}
