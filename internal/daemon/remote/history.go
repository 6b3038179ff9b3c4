package remote

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// each asks every node that answers for one thing more. What one of them cannot say is the
// Error of its Answer.
func (c *Cluster) each(
	ctx context.Context, ask func(context.Context, *admin.Client, *Answer) error,
) ([]Answer, error) {
	answers, err := c.All(ctx)
	for i := range answers {
		a := &answers[i]
		if a.Status == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		client := c.client(*a)
		if err := ask(ctx, client, a); err != nil {
			a.Error = err.Error()
		}
		client.Close()
		cancel()
	}
	return answers, err
}

// Recordings are what all nodes that answer have recorded, by their names.
func (c *Cluster) Recordings(ctx context.Context) (
	recordings map[cluster.NodeID]admin.Recording, answers []Answer, err error,
) {
	recordings = map[cluster.NodeID]admin.Recording{}
	answers, err = c.each(ctx, func(ctx context.Context, client *admin.Client, a *Answer) error {
		r, err := client.Recording(ctx)
		if err == nil {
			recordings[a.Node] = r
		}
		return err
	})
	return recordings, answers, err
}

// History is who led an election, as all nodes that answer have seen it together. The answers
// say who could not be asked.
func (c *Cluster) History(ctx context.Context, group string) (
	all []recording.Leadership, answers []Answer, err error,
) {
	var views [][]recording.Leadership
	answers, err = c.each(ctx, func(ctx context.Context, client *admin.Client, _ *Answer) error {
		h, err := client.History(ctx)
		views = append(views, h.Leaderships)
		return err
	})
	other := func(l recording.Leadership) bool { return l.Group != group }
	return slices.DeleteFunc(recording.Merge(views...), other), answers, err
}

// PrintHistory writes a table, a line per leadership. Whose word the reason is has a column:
// another than the leader only saw the end.
func PrintHistory(w io.Writer, all []recording.Leadership) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "LEADER\tTERM\tFROM\tTO\tLASTED\tREASON\tSAID BY")
	for _, l := range all {
		to, lasted, reason, by := "now", "-", "-", "-"
		if !l.To.IsZero() {
			to, lasted, reason = stampOf(l.To), l.To.Sub(l.From).Round(time.Millisecond).String(),
				"unknown: "+l.Node+" did not run"
		}
		if l.Reason != "" {
			reason, by = l.Reason, l.ReasonBy
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", l.Leader, l.Term, stampOf(l.From), to,
			lasted, reason, by)
	}
	return tw.Flush()
}

// stampOf writes a time in the time zone of this machine.
func stampOf(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05.000") }
