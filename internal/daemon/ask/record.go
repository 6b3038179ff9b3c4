package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/lsn"
)

// NearLeader returns a client for the leader of an election or, if that cannot be asked from here,
// for a node that follows it and passes requests on.
func (c *Cluster) NearLeader(ctx context.Context, group string) (*admin.Client, error) {
	leader, others, _, err := c.search(ctx, group)
	if err != nil {
		return nil, err
	}
	if leader.silent() {
		follows := func(a Answer) bool { return admin.GroupIn(*a.Status, group).Leader != "" }
		i := slices.IndexFunc(others, follows)
		if i < 0 {
			return nil, noLeaderAmong(others, group)
		}
		leader = others[i]
	}
	return c.client(leader), nil
}

// Record returns the newest record of an election: the leader's or, without a leader, the newest
// that any node knows to be committed. Then the error is a NoLeaderError.
func (c *Cluster) Record(ctx context.Context, group string) (admin.Record, error) {
	client, none := c.NearLeader(ctx, group)
	if none == nil {
		return client.Record(ctx, group)
	}
	if !errors.As(none, new(NoLeaderError)) {
		return admin.Record{}, none
	}
	answers, err := c.Status(ctx, group)
	if err != nil {
		return admin.Record{}, err
	}
	answers = slices.DeleteFunc(answering(answers), func(a Answer) bool {
		return recordOf(a).Committed.IsZero()
	})
	if len(answers) == 0 {
		return admin.Record{}, none
	}
	newest := slices.MaxFunc(answers, func(a, b Answer) int {
		return recordOf(a).Committed.Compare(recordOf(b).Committed)
	})
	rec, err := c.client(newest).Record(ctx, group)
	return rec, cmp.Or(err, none)
}

// recordOf is what a node knows of the record; the zero value if none was ever written.
func recordOf(a Answer) cluster.RecordStatus {
	if r := a.election().Record; r != nil {
		return *r
	}
	return cluster.RecordStatus{}
}

// WatchRecord calls show for the newest committed record of an election, and whenever that changes,
// until ctx ends. It goes on at another node if the one that it asks is lost, and calls lost.
func (c *Cluster) WatchRecord(
	ctx context.Context, group string, show func(admin.Record), lost func(error),
) error {
	var seen lsn.LSN
	for begun := false; ; begun = true {
		client, err := c.NearLeader(ctx, group)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, new(config.UsageError)), err != nil && !begun:
			return err
		case err == nil:
			err = client.FollowRecord(ctx, group, seen, func(rec admin.Record) {
				if seen.Less(rec.LSN) { // another node may be behind
					seen = rec.LSN
					show(rec)
				}
			})
		}
		if ctx.Err() == nil && err != nil {
			lost(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchRetry):
		}
	}
}

// RecordLine describes a record in a line; a value that is no text, or is long, in part.
func RecordLine(rec admin.Record) string {
	var voters []cluster.NodeID
	for _, v := range rec.Voters {
		voters = append(voters, v.Node)
	}
	text := fmt.Sprintf("%s  voters %s  ", rec.LSN, words.List(voters))
	if rec.ValueLSN.IsZero() {
		return text + "no value"
	}
	return text + fmt.Sprintf("value %s, %s: %.40q", rec.ValueLSN,
		console.Count(len(rec.Value), "byte"), rec.Value)
}

// Voters returns who votes in an election, as the node says that knows the newest record, and what
// all nodes answer.
func (c *Cluster) Voters(ctx context.Context, group string) (admin.Voters, []Answer, error) {
	answers, err := c.Status(ctx, group)
	if err != nil {
		return admin.Voters{}, nil, err
	}
	best := slices.MaxFunc(answering(answers), func(a, b Answer) int {
		return recordOf(a).Accepted.Compare(recordOf(b).Accepted)
	})
	return admin.VotersIn(*best.Status, group), answers, nil
}

// PrintVoters writes a table, a line for each voter, and below it what needs words.
func PrintVoters(w io.Writer, v admin.Voters, answers []Answer) error {
	head := fmt.Sprintf("%s by the configuration, %d needed; no record was written",
		console.Count(len(v.Voters), "voter"), v.Quorum)
	if v.Record != nil {
		head = fmt.Sprintf("%s by record %s, %d needed", console.Count(len(v.Voters), "voter"),
			v.Record.Accepted, v.Quorum)
	}
	rows := []string{"VOTER\tDISK\tRECORD\t"}
	for _, voter := range v.Voters {
		rows = append(rows, voterRow(voter, v, answers))
	}
	lines := append([]string{head}, console.Columns(rows)...)
	var observers []cluster.NodeID
	for _, a := range answering(answers) {
		if !slices.ContainsFunc(v.Voters, func(b cluster.Voter) bool { return b.Node == a.Node }) {
			observers = append(observers, a.Node)
		}
	}
	if len(observers) > 0 {
		lines = append(lines, "without a vote: "+words.List(observers))
	}
	lines = append(lines, records(answering(answers))...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func voterRow(voter cluster.Voter, v admin.Voters, answers []Answer) string {
	a, record, remark := find(answers, voter.Node), "-", ""
	switch {
	case a == nil:
		remark = "never seen"
	case a.silent():
		remark = "does not answer: " + a.Error
	default:
		if at := recordOf(*a).Accepted; !at.IsZero() {
			record = at.String()
		}
		switch {
		case a.election().Leading:
			remark = "leads"
		case v.Record != nil && voter.Identity != "" && voter.Identity != a.Status.Identity:
			remark = "does not count: it is on another disk, " + disk(a.Status.Identity)
		case v.Record != nil && recordOf(*a).Accepted.Less(v.Record.Accepted):
			remark = "behind"
		}
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", voter.Node, disk(voter.Identity), record, remark)
}

// disk is how people tell data directories apart.
func disk(identity string) string { return cmp.Or(fmt.Sprintf("%.8s", identity), "-") }

// recordNotes says what the record is, if there is one, and what the nodes know of it.
func recordNotes(answered []Answer) []string {
	if len(answered) == 0 {
		return nil
	}
	newest := slices.MaxFunc(answered, func(a, b Answer) int {
		return recordOf(a).Accepted.Compare(recordOf(b).Accepted)
	})
	r := recordOf(newest)
	if r.Accepted.IsZero() {
		return nil
	}
	value := "no value"
	if !r.ValueLSN.IsZero() {
		value = fmt.Sprintf("value %s of %s", r.ValueLSN, console.Count(r.ValueSize, "byte"))
	}
	var voters []cluster.NodeID
	for _, v := range r.Voters {
		voters = append(voters, v.Node)
	}
	text := fmt.Sprintf("record %s: %s, voters %s", r.Accepted, value, words.List(voters))
	if r.Committed != r.Accepted {
		text += "; not committed, as " + string(newest.Node) + " knows"
	}
	return append([]string{text}, records(answered)...)
}

// records says what the nodes know of the record, if there is one.
func records(answered []Answer) (lines []string) {
	var configured remarks
	for _, a := range answered {
		r := recordOf(a)
		if len(r.Behind) > 0 {
			lines = append(lines, fmt.Sprintf("behind record %s: %s", r.Accepted, words.List(r.Behind)))
		}
		if r.Change != "" {
			lines = append(lines, "voters change: "+r.Change)
		}
		if len(r.Configured) > 0 {
			configured.add(a.Node, "configured with the voters "+words.List(r.Configured)+
				", which count only for elections that are opened later")
		}
	}
	return append(lines, configured.lines()...)
}
