package embedding

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// table says which worker has which shard.
type table map[string]string

// snippet: publish
// assign gives a shard to a worker, and returns when no later leader can have missed that.
func assign(ctx context.Context, l *cluster.Leadership, shard, worker string) error {
	rec, err := l.Record(ctx) // what the leaders before have decided, never stale
	if err != nil {
		return err
	}
	all := table{}
	if len(rec.Value) > 0 {
		if err := json.Unmarshal(rec.Value, &all); err != nil {
			return err
		}
	}
	all[shard] = worker
	value, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_, err = l.Publish(ctx, value) // nil: a quorum has it on disk
	return err
}

// end

// show tells of every assignment, on any node.
func show(ctx context.Context, e *cluster.Election) {
	// snippet: records
	for rec := range e.Records(ctx) {
		if !rec.ValueLSN.IsZero() { // otherwise this node knows of no value yet
			fmt.Printf("%s: %s\n", rec.LSN, rec.Value)
		}
	}
	// end
}

// replace writes a value in place of the one that the caller has seen, from any node.
func replace(
	ctx context.Context, e *cluster.Election, seen cluster.Record, value []byte,
) (lsn.LSN, error) {
	// snippet: if-match
	at, err := e.Publish(ctx, value, cluster.PublishOptions{IfMatch: &seen.ValueLSN})
	// end
	return at, err
}

// move gives the vote of a machine to another one.
func move(ctx context.Context, node *cluster.Node, old, by cluster.NodeID) error {
	// snippet: voters
	err := node.ReplaceVoter(ctx, old, by, cluster.VoterOptions{Progress: func(s cluster.VoterStep) {
		fmt.Printf("%s: %s\n", s.Group, s.Text)
	}})
	// end
	return err
}
