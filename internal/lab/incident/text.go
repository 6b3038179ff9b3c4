package incident

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// maxSeen bounds how many records the report shows one by one.
const maxSeen = 200

// Report writes for people what was seen, what follows from it, what does not, and whether
// the simulator shows it.
func (in *Incident) Report(w io.Writer, r *Replay) error {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Incident from %s to %s, by the clock of %s", in.Start.Format(time.DateTime),
		in.End.Format(time.TimeOnly), in.sources[0].Node)
	for _, node := range slices.Sorted(maps.Keys(in.Clocks)) {
		line("The clock of %s is %s ahead: put right", node, in.Clocks[node].Round(time.Millisecond))
	}
	line("\nWhat the nodes saw")
	all := in.seen()
	for _, s := range all[:min(len(all), maxSeen)] {
		line("  %s %s: %s", s.at.Format(clockTime), words.List(s.nodes), s.text)
	}
	if more := len(all) - maxSeen; more > 0 {
		line("  and %d more", more)
	}
	line("\nWhat follows from it")
	for i := range in.Steps {
		s := &in.Steps[i]
		line("  %s {%s}: %s", s.At.Format(clockTime), in.action(s), s.Why)
	}
	if len(in.Steps) == 0 {
		line("  no fault")
	}
	if len(in.Doubts) > 0 {
		line("\nWhat is not certain")
	}
	for _, d := range in.Doubts {
		line("  %s", d)
	}
	line("\nWho led")
	for i := range in.Led {
		line("  %s", leadership(&in.Led[i]))
	}
	switch {
	case !r.Same:
		line("\nNOT the same in the simulator: none of %d seeds shows these leaders for these reasons.",
			r.Tried)
		line("Seed %d shows the first %d of %d leaderships:", r.Seed, r.Alike, r.Of)
		for _, text := range r.Led {
			line("  %s", text)
		}
		line("Choose a shorter time with --from and --to, try more --seeds, or correct the timeline.")
	default:
		line("\nThe simulator shows the same leaders for the same reasons, with seed %d.", r.Seed)
		if !r.Run.Held() {
			line("With none of %d seeds they also led at all moments that the file expects.", r.Tried)
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// seen is one thing that nodes recorded, within a second of each other.
type seen struct {
	at    time.Time // of the first
	nodes []string
	text  string
}

// seen are the records of the window as sentences.
func (in *Incident) seen() (all []seen) {
	latest := map[string]int{} // place of a text
	for _, r := range in.records {
		text := in.sentence(&r)
		if text == "" || r.Time.Before(in.Start) || r.Time.After(in.End) {
			continue
		}
		at, known := latest[text]
		if known && r.Time.Sub(all[at].at) < soon && !slices.Contains(all[at].nodes, r.Node) {
			all[at].nodes = append(all[at].nodes, r.Node)
			continue
		}
		latest[text] = len(all)
		all = append(all, seen{r.Time, []string{r.Node}, text})
	}
	return all
}

// sentence says in words what a record means; "" if it is about another election.
func (in *Incident) sentence(r *recording.Record) string {
	faults := ""
	if r.Faults != "" {
		faults = " (a rehearsal had cut " + r.Faults + ")"
	}
	text, known := map[recording.Kind]string{
		recording.Started:  fmt.Sprintf("started, boot %d", r.Boot),
		recording.Ended:    "ended in good order",
		recording.LinkUp:   "link to " + r.Peer + " up" + faults,
		recording.LinkDown: "link to " + r.Peer + " down: " + r.Why + faults,
		recording.Died:     r.Peer + " is proven dead: " + r.Why + faults,
		recording.Held:     fmt.Sprintf("was held up for %.3g s", r.Seconds),
	}[r.Kind]
	if known || r.Group != in.Group {
		return text
	}
	switch r.Kind {
	case recording.Transition:
		text = fmt.Sprintf("%s -> %s %s, term %d", r.From, r.To, r.Reason, r.Term)
		if r.Leader != "" {
			text += ", leader " + r.Leader
		}
	case recording.Transfer:
		text = "was told to hand over to " + cmp.Or(r.To, "the best follower")
	case recording.AddVoter:
		text = "was told to make " + r.To + " a voter"
	case recording.RemoveVoter:
		text = "was told to remove the voter " + r.To
	case recording.StepDown:
		text = fmt.Sprintf("was told to step down for %g s", r.Seconds)
	case recording.Unfit, recording.Fit:
		text = "its application is " + string(r.Kind)
	}
	return text
}
