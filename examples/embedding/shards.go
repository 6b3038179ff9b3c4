package embedding

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/shards"
	"github.com/bmqelect/bmqelect/lsn"
)

// WorkOnShards works on the shards that this node leads, until ctx ends.
func WorkOnShards(
	ctx context.Context, node *cluster.Node, write func(context.Context, int, lsn.LSN) error,
) error {
	// snippet: shards
	return shards.Run(ctx, node, shards.Config{
		N: 1000, // the same on every node
		Work: func(ctx context.Context, s shards.Shard) error {
			for ctx.Err() == nil { // canceled before the lease ends
				token, err := s.Token()
				if err != nil {
					return err
				}
				if err := write(ctx, s.Number, token); err != nil {
					return err // another node takes this shard, and this one rests
				}
			}
			return nil
		},
	})
	// end
}
