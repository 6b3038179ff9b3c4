// Package shards splits the work of an application over the nodes of a cluster. Each shard is an
// election of its own, and Run calls the application's Work for each shard that this node leads:
//
//	err := shards.Run(ctx, node, shards.Config{
//		N: 1000, // the same on every node
//		Work: func(ctx context.Context, s shards.Shard) error {
//			for ctx.Err() == nil { // canceled before the lease ends
//				token, err := s.Token()
//				...
//			}
//			return nil
//		},
//	})
//
// There is no coordinator. Every voter opens the election of every shard, so it sees who leads
// what. Three rules spread the shards:
//
//   - A hash ranks the nodes for each shard, as rendezvous hashing does. The first in rank stands
//     at once, each other one only when those before it had time to be elected. The rank is also
//     the priority: if a leader dies or ends, the first of the others follows it. So only the
//     shards of dead nodes move, and they move to all others alike.
//   - A leader stays. A node that comes back gets nothing by itself.
//   - If a node leads more shards than the least loaded one, by a margin and for a while, it hands
//     its surplus over, a few shards a second. All nodes compute the same plan from what they see.
//
// A planned move waits until the old owner's Work has returned, or its lease has ended: the Work of
// two nodes never overlaps if it stops in time. A resource that others share still has to check
// tokens, because a process may be paused right before it writes.
//
// A shard that is only followed has no goroutine here.
//
// It is not for shards whose number changes while they run, or whose loads differ much: they all
// count the same.
package shards
