package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// watchRetry is the pause before a lost node is asked again.
const watchRetry = time.Second

// Watch prints the events of all nodes that a stream asks for until ctx ends. It follows each node
// as soon as another one names it, whether it answers or not.
func (c *Cluster) Watch(ctx context.Context, to io.Writer, only admin.Stream) error {
	c.selection = cluster.Selection{Group: only.Group}
	if only.Group != "" { // nothing would come of a mistyped one
		if _, err := c.Status(ctx, c.selection); err != nil {
			return err
		}
	}
	out := &viewer{people: console.New(to), votes: map[string]admin.RecordEvent{}}
	if c.JSON {
		out.programs = json.NewEncoder(to)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	var silent []Answer
	followed := map[cluster.NodeID]bool{}
	err := c.walk(ctx, false, func(a Answer) bool {
		if a.silent() {
			silent = append(silent, a)
			return false
		}
		if len(followed) == 0 && !c.JSON {
			out.people.Say("watching; Ctrl-C ends it")
		}
		for _, one := range append([]Answer{a}, membersOf(*a.Status)...) {
			if followed[one.Node] {
				continue
			}
			followed[one.Node] = true
			if one.via != "" {
				wg.Go(func() { c.watchOne(ctx, one, only, out) })
			}
		}
		return false
	})
	if err == nil && len(followed) == 0 {
		err = noAnswerOf(silent)
	}
	return err
}

// watchOne follows one node across its restarts.
func (c *Cluster) watchOne(ctx context.Context, a Answer, only admin.Stream, out *viewer) {
	client := c.client(a)
	lost, first := false, true
	stream := admin.Stream{
		Group: only.Group, Prefix: only.Prefix, Kinds: only.Kinds,
		Event: out.event, Record: out.record,
		Voters: func(e admin.VotersEvent) {
			out.show(e, e.Node, "change of voters of %s: %s", e.Group, e.Text)
		},
		Probe: func(e admin.ProbeEvent) {
			verdict := "passes"
			if !e.Fit {
				verdict = console.Alert("fails:") + " " + e.Why
			}
			out.show(e, e.Node, "probe %s %s", e.Name, verdict)
		},
		Ready: func() {
			if lost {
				out.show(Answer{Node: a.Node, Addr: a.Addr}, a.Node, "answers again")
			} else if st, err := client.StatusOf(ctx, c.selection); first && err == nil {
				out.show(Answer{Node: a.Node, Addr: a.Addr, Status: &st}, a.Node, "%s", standings(st))
			}
			lost, first = false, false
		},
		Reset: func(gone admin.Reset) {
			out.show(gone, a.Node, "%s; now %s", gone.Reason, standings(gone.Status))
		},
	}
	for ctx.Err() == nil {
		err := client.Follow(ctx, &stream)
		if ctx.Err() == nil && !lost {
			lost = true
			why := "the stream ended"
			if err != nil {
				why = err.Error()
			}
			out.show(Answer{Node: a.Node, Addr: a.Addr, Error: why}, a.Node, "%s: %s",
				console.Alert("does not answer"), why)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

// viewer shows what a watch sees: lines in colors for people, or JSON, an object a line. It is safe
// for concurrent use.
type viewer struct {
	people   *console.Printer
	mu       sync.Mutex // held while programs or votes is used
	programs *json.Encoder
	votes    map[string]admin.RecordEvent // the newest that was shown, by election
}

func (v *viewer) event(e admin.Event) {
	if !v.tell(e) {
		v.people.Transition(e)
	}
}

// record shows the voters of an election whenever they change, and those that count for nothing.
func (v *viewer) record(e admin.RecordEvent) {
	v.mu.Lock()
	old, known := v.votes[e.Group]
	isNew := !known || !e.Record.Committed.Less(old.Record.Committed) &&
		(!slices.Equal(old.Record.Voters, e.Record.Voters) ||
			!slices.Equal(old.Record.Uncounted, e.Record.Uncounted))
	if isNew {
		v.votes[e.Group] = e
	}
	v.mu.Unlock()
	if !isNew {
		return
	}
	text := fmt.Sprintf("the voters of %s are %s, by record %s", e.Group,
		words.List(names(e.Record.Voters)), e.Record.Committed)
	if len(e.Record.Uncounted) > 0 {
		text += "; " + console.Alert("counts for nothing:") + " " + words.List(e.Record.Uncounted) +
			" (see 'bmqnode voters')"
	}
	v.show(e, "", "%s", text)
}

// show shows a value; people read the text instead.
func (v *viewer) show(value any, about cluster.NodeID, format string, args ...any) {
	if !v.tell(value) {
		v.people.Note(time.Now(), string(about), format, args...)
	}
}

// tell encodes a value as JSON. It reports false if people read.
func (v *viewer) tell(value any) bool {
	if v.programs == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.programs.Encode(value) // an error means that nobody reads any more
	return true
}

func standings(st cluster.Status) string {
	var now []string
	if st.Elections != nil {
		now, st.Groups = append(now, sumsText(st.Elections)), nil
	}
	for _, g := range st.Groups {
		now = append(now, fmt.Sprintf("%s in term %d (%s)", g.Role, g.Term, g.Explanation))
	}
	return cmp.Or(strings.Join(now, "; "), "takes no part in it")
}
