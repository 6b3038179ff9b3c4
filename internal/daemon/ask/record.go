package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// WatchRecord calls show for the newest committed record of an election, and whenever that changes,
// until ctx ends. It goes on at another node if the one that it asks is lost.
func (c *Cluster) WatchRecord(ctx context.Context, group string, show func(admin.Record)) error {
	var seen lsn.LSN
	for begun := false; ctx.Err() == nil; begun = true {
		_, client, err := c.AtLeader(ctx, group, true)
		if err != nil && !begun || errors.As(err, new(config.UsageError)) {
			return err
		}
		if err == nil {
			_ = client.FollowRecord(ctx, group, seen, func(rec admin.Record) {
				if seen.Less(rec.LSN) { // another node may be behind
					seen = rec.LSN
					show(rec)
				}
			})
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
	return nil
}

// RecordLine describes a record in a line; a value that is no text, or is long, in part.
func RecordLine(rec admin.Record) string {
	return fmt.Sprintf("%s  voters %s  value %s, %s: %.40q", rec.LSN, words.List(names(rec.Voters)),
		rec.ValueLSN, console.Count(len(rec.Value), "byte"), rec.Value)
}

func names(voters []cluster.Voter) (ids []cluster.NodeID) {
	for _, v := range voters {
		ids = append(ids, v.Node)
	}
	return ids
}

// recordOf is what a node knows of the record; the zero value if none was ever written.
func recordOf(a Answer) cluster.RecordStatus {
	if r := a.election().Record; r != nil {
		return *r
	}
	return cluster.RecordStatus{}
}

// newestRecord is the newest record that is on a node's disk; zero if there is none.
func newestRecord(answered []Answer) (newest cluster.RecordStatus) {
	for _, a := range answered {
		if r := recordOf(a); newest.Accepted.Less(r.Accepted) {
			newest = r
		}
	}
	return newest
}

// records says what the nodes know of the record, if there is one.
func records(answered []Answer) (lines []string) {
	r := newestRecord(answered)
	if r.Accepted.IsZero() {
		return nil
	}
	text := fmt.Sprintf("record %s: voters %s, value %s of %s", r.Accepted,
		words.List(names(r.Voters)), r.ValueLSN, console.Count(r.ValueSize, "byte"))
	if r.Committed != r.Accepted {
		text += "; not known to be committed"
	}
	if r.Change != "" {
		text += "; the voters change: " + r.Change
	}
	lines = append(lines, text)
	var differ remarks
	for _, a := range answered {
		if own := recordOf(a); own.Accepted != r.Accepted && !a.election().Leading {
			differ.add(a.Node, "has record "+own.Accepted.String())
		} else if len(own.Configured) > 0 {
			differ.add(a.Node, "configured with the voters "+words.List(own.Configured)+
				", which count only where an election is opened for the first time")
		}
	}
	return append(lines, differ.lines()...)
}

// VotersTable shows who votes, as a node sees it, a line for each voter.
func VotersTable(st cluster.Status, g cluster.GroupStatus) string {
	var r cluster.RecordStatus
	if g.Record != nil {
		r = *g.Record
	}
	rows := []string{"VOTER\tDISK\tSTATE"}
	for _, id := range g.Voters {
		state, disk := admin.MemberIn(st, id).Link, "-"
		if i := slices.IndexFunc(r.Voters, func(v cluster.Voter) bool { return v.Node == id }); i >= 0 {
			disk = cmp.Or(fmt.Sprintf("%.8s", r.Voters[i].Identity), "-")
		}
		switch {
		case id == g.Leader:
			state = "leads"
		case slices.Contains(r.Behind, id):
			state += ", lacks the newest record"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s", id, disk, cmp.Or(state, "up")))
	}
	lines := append(console.Columns(rows), fmt.Sprintf("%d of %d are needed", g.Quorum,
		len(g.Voters)))
	st.Groups = []cluster.GroupStatus{g}
	lines = append(lines, records([]Answer{{Node: st.Node, Status: &st}})...)
	return strings.Join(lines, "\n") + "\n"
}
