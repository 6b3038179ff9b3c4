package incident

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/words"
)

// maxSeen bounds how many records the report shows one by one.
const maxSeen = 200

// Report writes for people what was seen, what follows from it, what does not, and whether
// the simulator shows it.
func (in *Incident) Report(w io.Writer, r *Replay) error {
	p := printer{w: w}
	p.line("Incident from %s to %s, by the clock of %s", in.Start.Format("2006-01-02 15:04:05"),
		in.End.Format("15:04:05"), in.first)
	for _, node := range slices.Sorted(maps.Keys(in.Clocks)) {
		p.line("The clock of %s is %s ahead: put right", node, in.Clocks[node].Round(time.Millisecond))
	}
	p.line("\nWhat the nodes saw")
	for i, s := range in.Seen {
		if i == maxSeen {
			p.line("  and %d more", len(in.Seen)-maxSeen)
			break
		}
		p.line("  %s %s: %s", s.At.Format(clockTime), words.List(s.Nodes), s.Text)
	}
	p.line("\nWhat follows from it")
	for i := range in.Steps {
		s := &in.Steps[i]
		p.line("  %s {%s}: %s", s.At.Format(clockTime), in.action(s), s.Why)
	}
	if len(in.Steps) == 0 {
		p.line("  no fault")
	}
	if len(in.Doubts) > 0 {
		p.line("\nWhat is not certain")
	}
	for _, d := range in.Doubts {
		p.line("  %s", d)
	}
	p.line("\nWho led")
	for i := range in.Led {
		p.line("  %s", in.leadership(&in.Led[i]))
	}
	p.verdict(in, r)
	return p.err
}

func (p *printer) verdict(in *Incident, r *Replay) {
	if r.Same {
		p.line("\nThe simulator shows the same leaders for the same reasons, with seed %d.", r.Seed)
		if !r.Run.Held() {
			p.line("With none of %d seeds they also led at all moments that the file expects.", r.Tried)
		}
		return
	}
	p.line("\nNOT the same in the simulator: none of %d seeds shows these leaders for these reasons.",
		r.Tried)
	p.line("Seed %d shows the first %d of %d leaderships:", r.Seed, r.Alike, r.Of)
	for _, text := range r.Led {
		p.line("  %s", text)
	}
	p.line("Choose a shorter time with --from and --to, try more --seeds, or correct the timeline.")
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
