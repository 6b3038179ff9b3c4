package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// life is the time of one process, or a part of it between two pauses.
type life struct {
	from, to time.Time // to is zero if it goes on
	started  bool      // from is the start of a process
	ended    string    // crash, stop or pause; "" while it goes on
	why      string    // to what the end is owed
	wiped    bool      // it started on an empty directory
}

// soon is within how long two nodes see the same thing happen.
const soon = time.Second

// findLives finds out when each process ran, and adds the steps that follow.
func (in *inference) findLives() {
	in.lives = map[string][]life{}
	for _, node := range in.nodes {
		if s := in.source(node); s != nil {
			in.lives[node] = in.livesOf(s)
		} else {
			in.lives[node] = in.livesBySight(node)
		}
		for i, l := range in.lives[node] {
			switch {
			case l.started:
				in.step(Step{At: l.from, Do: "restart", Nodes: []string{node}, Wipe: l.wiped,
					Why: node + " started"})
			case i > 0:
				in.step(Step{At: l.from, Do: "resume", Nodes: []string{node}, Why: node + " went on"})
			}
			if l.ended != "" {
				in.step(Step{At: l.to, Do: l.ended, Nodes: []string{node}, Why: l.why})
			}
		}
	}
}

// livesOf are the lives of a node by its own recording.
func (in *inference) livesOf(s *Source) (all []life) {
	for i := range s.Records {
		r := &s.Records[i]
		if i == 0 || r.Boot != s.Records[i-1].Boot {
			if i > 0 {
				in.endProcess(s, &all[len(all)-1], &s.Records[i-1], r.Time)
			}
			started := r.Kind == recording.Started
			all = append(all, life{from: r.Time, started: started,
				wiped: i == 0 && started && in.seenBefore(s.Node, r)})
		}
		now := &all[len(all)-1]
		switch {
		case r.Kind == recording.Ended && now.ended == "":
			now.to, now.ended, now.why = r.Time, "stop", s.Node+" ended in good order"
		case r.Kind == recording.Transition && r.Group == in.o.Group && r.To == "DORMANT":
			now.to, now.ended, now.why = r.Time, "stop", s.Node+" ended in good order"
		case r.Kind == recording.Held && now.ended == "" && seconds(r.Seconds) >= in.period:
			began := r.Time.Add(-(seconds(r.Seconds) + seconds(max(r.AtMost, r.Seconds))) / 2)
			if began.After(now.from) {
				now.to, now.ended = began, "pause"
				now.why = fmt.Sprintf("%s did nothing for %.3g s", s.Node, r.Time.Sub(began).Seconds())
				all = append(all, life{from: r.Time})
			}
		}
	}
	if last := &all[len(all)-1]; last.ended == "" && !s.Alive {
		in.endProcess(s, last, &s.Records[len(s.Records)-1], time.Time{})
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// seenBefore reports whether another node has met a process of that name on another data
// directory, before this first start of a recording.
func (in *inference) seenBefore(node string, start *recording.Record) bool {
	for _, s := range in.sources {
		for _, r := range s.Records {
			if r.Kind == recording.LinkUp && r.Peer == node && r.Identity != start.Identity &&
				r.Time.Before(start.Time) {
				return true
			}
		}
	}
	return false
}

// endProcess finds out when a process ended that did not say so: after its last record, and
// after others last saw it work, and before the next start, which is zero if there was none.
func (in *inference) endProcess(s *Source, l *life, final *recording.Record, next time.Time) {
	if l.ended != "" {
		return
	}
	before := cmp.Or(next, in.o.To)
	last := in.lastSeen(s.Node, final.Boot, final.Time, before)
	end, why := in.lossOf(s.Node, last, before)
	switch {
	case !end.IsZero():
	case next.IsZero():
		in.doubt("%s does not answer, but nobody has lost it: it is taken to run", s.Node)
		return
	default:
		end, why = next.Add(-soon), "it started again, and nobody saw when it had ended"
	}
	if end.Before(last) {
		end = last
	}
	l.to, l.ended, l.why = end, "crash", s.Node+" ended without a word: "+why
}

// lossOf is when the others lost a node between two moments; zero if they did not. Of what
// weighs most the first end of a connection counts, or the end of the last sign of life.
func (in *inference) lossOf(node string, after, before time.Time) (at time.Time, why string) {
	after, before = after.Add(-sameMoment), before.Add(soon)
	heaviest := 0
	for _, s := range in.sources {
		for _, r := range s.Records {
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
				why = fmt.Sprintf("%s lost the link (%s)", s.Node, r.Why)
			}
		}
	}
	return at, why
}

// How much evidence of the end of a process weighs.
const (
	nothing   = iota // a goodbye, or silence for a node that did not listen
	unheard          // a node that listened heard nothing
	streamEnd        // a kernel ends the connections of a dead process
)

// evidence is when the process at the other end of a link ended, if it did, by a record of
// this end, and how much that weighs.
func (in *inference) evidence(r *recording.Record) (at time.Time, weight int) {
	switch {
	case r.Kind == recording.Died && r.Why != elector.ProofReincarnated.String():
		return r.Time, streamEnd
	case r.Kind != recording.LinkDown, r.Why == "goodbye", r.Why == "local":
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
func (in *inference) heldUp(node string, at time.Time) bool {
	s := in.source(node)
	return s != nil && slices.ContainsFunc(s.Records, func(r recording.Record) bool {
		began := r.Time.Add(-seconds(max(r.AtMost, r.Seconds)))
		return r.Kind == recording.Held && seconds(r.Seconds) >= in.period &&
			!at.Before(began) && !at.After(r.Time.Add(soon))
	})
}

// lastSeen is when a process last worked for sure: when it recorded something last, or later,
// when another had a link to it made or began to follow it.
func (in *inference) lastSeen(node string, boot uint64, own, before time.Time) time.Time {
	last := own
	for _, s := range in.sources {
		for _, r := range s.Records {
			linked := r.Kind == recording.LinkUp && r.Peer == node && r.PeerBoot == boot
			followed := r.Kind == recording.Transition && r.Leader == node && s.Node != node
			if (linked || followed) && r.Time.After(last) && r.Time.Before(before) &&
				!in.heldUp(s.Node, r.Time) {
				last = r.Time
			}
		}
	}
	return last
}

// livesBySight are the lives of a node without a recording, by what the others saw: it ran
// while any of them had a link to it. If it comes back as the same process it was cut off
// or paused, which the links tell.
func (in *inference) livesBySight(node string) (all []life) {
	var seen []recording.Record
	for _, s := range in.sources {
		for _, r := range s.Records {
			if r.Peer == node && (r.Kind == recording.LinkUp || r.Kind == recording.LinkDown) {
				seen = append(seen, r)
			}
		}
	}
	slices.SortStableFunc(seen, func(a, b recording.Record) int { return a.Time.Compare(b.Time) })
	linked, boot := map[string]bool{}, uint64(0)
	for _, r := range seen {
		if r.Kind == recording.LinkUp {
			if boot != r.PeerBoot {
				started := r.Time.Add(-dialTime)
				if n := len(all); n > 0 && all[n-1].ended == "" {
					all[n-1].to = later(started.Add(-soon), all[n-1].from)
					all[n-1].ended, all[n-1].why = "crash", node+" came back as another process"
				}
				if n := len(all); n > 0 {
					started = later(started, all[n-1].to) // it was linked again at once
				}
				all = append(all, life{from: started, started: true})
			} else if n := len(all); n > 0 && all[n-1].ended != "" {
				all[n-1].to, all[n-1].ended = time.Time{}, "" // the same process
			}
			linked[r.Node], boot = true, r.PeerBoot
			continue
		}
		if all == nil {
			all = append(all, life{from: r.Time.Add(-time.Hour)})
		}
		if delete(linked, r.Node); len(linked) == 0 {
			last := &all[len(all)-1]
			last.ended, last.why = "crash", fmt.Sprintf("all have lost %s (%s)", node, r.Why)
			end, weight := in.evidence(&r)
			if r.Why == "timeout" && weight == nothing {
				seen := in.lastSeen(node, boot, last.from, r.Time)
				if at, why := in.lossOf(node, seen, r.Time); !at.IsZero() {
					end, last.why = at, why
				}
			}
			last.to = end
		}
	}
	return all
}

// dialTime is about how long after both ends can speak the link is up: half of the longest
// wait of the simulator.
const dialTime = 250 * time.Millisecond

// worked reports whether a node ran, and was not paused, all the time between two moments.
func (in *inference) worked(node string, from, to time.Time) bool {
	for _, l := range in.lives[node] {
		if !from.Before(l.from) && (l.to.IsZero() || !to.After(l.to)) {
			return true
		}
	}
	return false
}
