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
// until ctx ends. It goes on at another node if the one that it asks is lost, also without leader.
func (c *Cluster) WatchRecord(ctx context.Context, group string, show func(admin.Record)) error {
	var seen lsn.LSN
	for begun := false; ctx.Err() == nil; begun = true {
		_, client, err := c.AtLeader(ctx, group, true)
		if client == nil && !begun || errors.As(err, new(config.UsageError)) {
			return err
		}
		if client != nil {
			look := func() {
				rec, err := client.Record(ctx, group, false)
				if err == nil && seen.Less(rec.LSN) { // another node may be behind
					seen = rec.LSN
					show(rec)
				}
			}
			_ = client.Follow(ctx, &admin.Stream{Ready: look, Record: func(e admin.RecordEvent) {
				if e.Group == group && seen.Less(e.Record.Committed) {
					look()
				}
			}})
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
func recordOf(a Answer) cluster.RecordStatus { return recordIn(a, a.election().Group) }

func recordIn(a Answer, group string) (r cluster.RecordStatus) {
	if known := admin.GroupIn(*a.Status, group).Record; known != nil {
		r = *known
	}
	return r
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
	st.Groups = []cluster.GroupStatus{g}
	own := Answer{Node: st.Node, Status: &st}
	r, rows, repair := recordOf(own), []string{"VOTER\tDISK\tSTATE"}, []string(nil)
	for _, id := range g.Voters {
		state, disk := cmp.Or(admin.MemberIn(st, id).Link, linkUp), "-"
		if i := slices.IndexFunc(r.Voters, func(v cluster.Voter) bool { return v.Node == id }); i >= 0 {
			disk = cmp.Or(fmt.Sprintf("%.8s", r.Voters[i].Identity), "-")
		}
		switch {
		case slices.Contains(r.Uncounted, id) && disk == "-":
			state += ", counts for nothing: no leader has met it yet"
		case slices.Contains(r.Uncounted, id):
			runs := cmp.Or(admin.MemberIn(st, id).Identity, st.Identity)
			state += fmt.Sprintf(", counts for nothing: it runs on disk %.8s", runs)
			repair = append(repair, fmt.Sprintf(
				"if the disk of %[1]s is gone for good: 'bmqnode voters replace %[1]s'", id))
		case id == g.Leader:
			state = "leads"
		case slices.Contains(r.Behind, id):
			state += ", lacks the newest record"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s", id, disk, state))
	}
	lines := append(console.Columns(rows), fmt.Sprintf("%d of %d are needed", g.Quorum,
		len(g.Voters)))
	if !g.Leading {
		lines = append(lines, fmt.Sprintf("this is what %s knows, which does not lead: %s", st.Node,
			g.Explanation))
	}
	return strings.Join(slices.Concat(lines, repair, records([]Answer{own})), "\n") + "\n"
}
