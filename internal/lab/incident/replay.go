package incident

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// Replay is how the simulator shows an incident.
type Replay struct {
	Run   verdict.Run // under Seed
	Seen  verdict.Run // what the nodes recorded
	Seed  uint64
	Tried int // seeds
	// Same says that the same nodes led in the same order, and lost it for the same reasons
	// at about the same times; Alike is how many of the first leaderships are the same, of
	// Of. Whether they also led at the moments that the scenario expects, Run says.
	Same      bool
	Alike, Of int
	// Differ is how many leaderships are not the same, of Total: the larger number of both.
	Differ, Total int
	Led           []string // what the simulator shows: leader, end and reason
}

// collapse makes one leadership of those in terms in which its leader was re-affirmed. What ended
// after the end of the window goes on.
func collapse(led []recording.Leadership, end time.Time) (all []recording.Leadership) {
	for _, l := range led {
		last := len(all) - 1
		if last >= 0 && all[last].Leader == l.Leader && all[last].Reason == elector.Reaffirmed.String() {
			all[last].To, all[last].Reason = l.To, l.Reason
		} else {
			all = append(all, l)
		}
	}
	if last := len(all) - 1; last >= 0 && all[last].To.After(end) {
		all[last].To, all[last].Reason = time.Time{}, ""
	}
	return all
}

// Replay looks for a seed under which the simulator shows the same leaders for the same
// reasons, among the first seeds and until ctx ends, and writes the best one into Text.
// Who wins an election is chance: a real one took its random waits from elsewhere.
func (in *Incident) Replay(ctx context.Context, seeds int) (best Replay, err error) {
	want := collapse(in.Led, in.End)
	best = Replay{Alike: -1, Of: len(want)}
	sc, err := scenario.Parse("incident.yaml", in.Text)
	if err != nil {
		return best, fmt.Errorf("the scenario that was written is wrong: %w", err)
	}
	held := false
	for ; best.Tried < seeds && !held && (best.Tried == 0 || ctx.Err() == nil); best.Tried++ {
		seed := uint64(best.Tried + 1)
		run, err := replay.Simulate(sc, replay.Options{Seed: seed})
		if err != nil {
			return best, err
		}
		led, alike := in.simulated(run.History), 0
		for alike < min(len(led), len(want)) && in.same(led[alike], want[alike]) {
			alike++
		}
		same := alike == len(want) && alike == len(led)
		held = same && run.Held()
		if alike > best.Alike || same && !best.Same || held {
			best.Seed, best.Alike, best.Same = seed, alike, same
		}
	}
	in.Text = in.write(best.Seed)
	if sc, err = scenario.Parse("incident.yaml", in.Text); err != nil {
		return best, err
	}
	best.Run, err = replay.Simulate(sc, replay.Options{Seed: best.Seed, Arrows: true})
	if err != nil {
		return best, err
	}
	best.Seen = verdict.New(sc, in.recorded(sc, best.Run.History))
	best.Run.History.Variant = "replay (simulated)"
	led := in.simulated(best.Run.History)
	best.Total = max(len(want), len(led))
	best.Differ = best.Total
	for _, r := range led {
		text := r.Leader + " goes on"
		if !r.To.IsZero() {
			text = fmt.Sprintf("%s until %s: %s", r.Leader, r.To.Format(clockTime), r.Reason)
		}
		best.Led = append(best.Led, text)
		same := func(seen recording.Leadership) bool { return in.same(r, seen) }
		if i := slices.IndexFunc(want, same); i >= 0 {
			best.Differ, want = best.Differ-1, want[i+1:]
		}
	}
	return best, nil
}

// same reports whether a leadership is the one that was seen. When one of unknown reason ended
// is not known. Nodes see other ends to about a second on both sides, and up to a heartbeat
// after their cause.
func (in *Incident) same(simulated, seen recording.Leadership) bool {
	near := simulated.To.Sub(seen.To).Abs() <= 2*soon+in.period
	return simulated.Leader == in.name(seen.Leader) && simulated.Reason == seen.Reason &&
		(near || seen.Reason == "")
}

// simulated is who led in a run, read from the records that its nodes would have made.
func (in *Incident) simulated(h *history.History) []recording.Leadership {
	var seen []recording.Leadership
	for i := range h.Lanes {
		seen = append(seen, recording.Leaderships(in.recordsOf(&h.Lanes[i]))...)
	}
	end := in.Start.Add(h.Duration)
	return collapse(within(recording.Merge("", seen), in.Start, end), end)
}

// recordsOf are the records that a node of a run would have made.
func (in *Incident) recordsOf(l *history.Lane) (records []recording.Record) {
	add := func(at time.Duration, r recording.Record) {
		r.Time, r.Node = in.Start.Add(at), string(l.Node)
		records = append(records, r)
	}
	was := history.Down
	for _, s := range l.Spans {
		if was == history.Down && s.Process != was {
			add(s.From, recording.Record{Kind: recording.Started})
		}
		was = s.Process
	}
	for _, t := range l.Transitions {
		add(t.At, recording.Record{Kind: recording.Transition, To: t.To.String(),
			Reason: t.Reason.String(), Term: uint64(t.Term), Leader: string(t.Leader)})
	}
	slices.SortStableFunc(records, byTime)
	return records
}
