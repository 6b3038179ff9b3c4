package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// watchRetry is the pause before a node that was lost is looked for again.
const watchRetry = time.Second

// viewer shows what a watch sees. It is safe for concurrent use.
type viewer interface {
	begun()
	now(Answer) // how things are when a node is asked first
	event(admin.Event)
	reset(cluster.NodeID, admin.Reset)
	lost(a Answer, why string)
	back(Answer)
}

// Watch prints the transitions of every node until ctx ends. It follows a node as soon as
// it is known, whether it answers or not.
func (c *Cluster) Watch(ctx context.Context, to io.Writer) error {
	var out viewer = people{console.New(to)}
	if c.JSON {
		out = &lines{to: json.NewEncoder(to)}
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
		if len(followed) == 0 {
			out.begun()
		}
		for _, one := range append([]Answer{a}, membersOf(*a.Status)...) {
			if followed[one.Node] {
				continue
			}
			followed[one.Node] = true
			if one.via != "" {
				wg.Go(func() { c.watchOne(ctx, one, out) })
			}
		}
		return false
	})
	if err == nil && len(followed) == 0 {
		err = noAnswerOf(silent)
	}
	return err
}

// watchOne follows one node through its restarts.
func (c *Cluster) watchOne(ctx context.Context, a Answer, out viewer) {
	client := c.client(a)
	defer client.Close()
	lost, first := false, true
	stream := admin.Stream{
		Event: out.event,
		Ready: func() {
			if lost {
				out.back(a)
			} else if st, err := client.Status(ctx); first && err == nil {
				out.now(Answer{Node: a.Node, Addr: a.Addr, Status: &st})
			}
			lost, first = false, false
		},
		Reset: func(gone admin.Reset) { out.reset(a.Node, gone) },
	}
	for ctx.Err() == nil {
		err := client.Follow(ctx, &stream)
		if ctx.Err() == nil && !lost {
			lost = true
			why := "the stream ended"
			if err != nil {
				why = err.Error()
			}
			out.lost(a, why)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

// people read a line per event, in colors.
type people struct{ out *console.Printer }

func (p people) begun()              { p.out.Say("watching; Ctrl-C ends it") }
func (p people) event(e admin.Event) { p.out.Transition(e) }
func (p people) back(a Answer)       { p.out.Note(time.Now(), string(a.Node), "answers again") }

func (p people) lost(a Answer, why string) {
	p.out.Note(time.Now(), string(a.Node), "%s: %s", console.Alert("does not answer"), why)
}

func (p people) now(a Answer) {
	p.out.Note(time.Now(), string(a.Node), "%s", standings(*a.Status))
}

func (p people) reset(node cluster.NodeID, gone admin.Reset) {
	p.out.Note(time.Now(), string(node), "%s; now %s", gone.Reason, standings(gone.Status))
}

// standings are how the elections of a node stand.
func standings(st cluster.Status) string {
	var now []string
	for _, g := range st.Groups {
		now = append(now, fmt.Sprintf("%s in term %d (%s)", g.Role, g.Term, g.Explanation))
	}
	return strings.Join(now, "; ")
}

// lines are for programs: one JSON object each.
type lines struct {
	mu sync.Mutex
	to *json.Encoder
}

func (l *lines) begun() {}

func (l *lines) now(a Answer) { l.write(a) }

func (l *lines) event(e admin.Event) { l.write(e) }

func (l *lines) reset(_ cluster.NodeID, gone admin.Reset) { l.write(gone) }

func (l *lines) back(a Answer) { l.write(Answer{Node: a.Node, Addr: a.Addr}) }

func (l *lines) lost(a Answer, why string) {
	l.write(Answer{Node: a.Node, Addr: a.Addr, Error: why})
}

func (l *lines) write(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.to.Encode(v) // an error means that nobody reads any more
}
