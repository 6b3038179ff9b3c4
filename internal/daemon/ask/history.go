package ask

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// each asks every node that answers one more question. If a node cannot answer that, its Answer has
// the Error.
func (c *Cluster) each(
	ctx context.Context, ask func(context.Context, *admin.Client, cluster.NodeID) error,
) ([]Answer, error) {
	answers, err := c.All(ctx)
	for i, a := range answers {
		if a.silent() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		if err := ask(ctx, c.client(a), a.Node); err != nil {
			answers[i].Error = err.Error()
		}
		cancel()
	}
	return answers, err
}

// Recordings returns the recordings of all nodes that answer, by name.
func (c *Cluster) Recordings(ctx context.Context) (
	all map[cluster.NodeID]admin.Recording, answers []Answer, err error,
) {
	all = map[cluster.NodeID]admin.Recording{}
	answers, err = c.each(ctx, func(
		ctx context.Context, client *admin.Client, id cluster.NodeID,
	) error {
		r, err := client.Recording(ctx)
		if err == nil {
			all[id] = r
		}
		return err
	})
	return all, answers, err
}

// History returns the leaderships of an election, merged from what all nodes that answer have seen.
// The answers say which nodes could not be asked.
func (c *Cluster) History(ctx context.Context, group string) (
	all []recording.Leadership, answers []Answer, err error,
) {
	answers, err = c.each(ctx, func(
		ctx context.Context, client *admin.Client, _ cluster.NodeID,
	) error {
		h, err := client.History(ctx)
		all = append(all, h.Leaderships...)
		return err
	})
	return recording.Merge(group, all), answers, err
}

// PrintHistory writes a table, a line per leadership. A column says which node gave the reason: any
// node except the leader only saw the end.
func PrintHistory(w io.Writer, all []recording.Leadership) error {
	rows := []string{"LEADER\tTERM\tFROM\tTO\tLASTED\tREASON\tSAID BY"}
	for _, l := range all {
		to, lasted, reason, by := "now", "-", "-", "-"
		if !l.To.IsZero() {
			to, lasted, reason = stampOf(l.To), l.To.Sub(l.From).Round(time.Millisecond).String(),
				"unknown: "+l.Node+" did not run"
		}
		if l.Reason != "" {
			reason, by = l.Reason, l.ReasonBy
		}
		rows = append(rows, fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s\t%s", l.Leader, l.Term,
			stampOf(l.From), to, lasted, reason, by))
	}
	_, err := fmt.Fprintln(w, strings.Join(console.Columns(rows), "\n"))
	return err
}

func stampOf(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05.000") }
