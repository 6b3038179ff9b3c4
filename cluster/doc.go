// Package cluster embeds a member of a bmqelect cluster in a Go program. A Node
// joins the others by gossip, keeps a TCP mesh with them, elects one leader
// and keeps it, with its term and identity on disk.
//
//	node, err := cluster.Start(ctx, cluster.Config{
//		Node: "a", Voters: []cluster.NodeID{"a", "b", "c"},
//		DataDir: "/var/lib/app/elector", Join: []string{"b.example:7400"},
//		GossipAddr: "0.0.0.0:7400", MeshAddr: "0.0.0.0:7401", // by default loopback
//		TLS: cluster.TLSDir("/etc/app/tls"), // bmqnode certs makes it
//		Election: cluster.ElectionConfig{AwaitCampaign: true}, // lead only within Run
//	})
//	...
//	err = node.Default().Run(ctx, cluster.Callbacks{
//		OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
//			for ctx.Err() == nil { // canceled before the lease ends
//				token, err := l.NextLSN() // a fencing token for what is done now
//				...
//			}
//			return nil
//		},
//	})
//
// There are three idioms over one mechanism: callbacks (Election.Run), handles
// (Election.Campaign, which returns a Leadership, and Observe), and asking
// (Node.IsLeader, Node.Subscribe), for programs that keep track themselves. With the
// first two, work that is told to stop and does so in time never overlaps with that
// of another node, whatever ends the leadership.
//
// One goroutine, the driver, owns every election of the process. It never waits:
// not for a peer, the disk or a subscriber. Another, the deadline watcher, tells
// guarded work in time to stop even if the driver is held up. All methods of Node are
// safe for concurrent use.
//
// Each election can keep one small document, which a quorum has on disk: its record
// (Leadership.Publish, Leadership.Record). It is no database. Its voters come from the
// configuration and, once there is a record, from that (Node.AddVoter). Membership by
// gossip never decides who votes, so that a partition cannot shrink a quorum.
//
// # How to read the package
//
// What decides is elsewhere. Two machines without goroutines say who leads (package elector) and
// how long guarded work may go on (internal/leadership). The driver (internal/loop) steps both. The
// watcher of deadlines, and each goroutine of the application that calls, step the second alone,
// behind a lock (internal/guarded). This package is their API. In order of reading:
//
//   - config.go: what a node is told, and what is wrong with it
//   - node.go, close.go: what it consists of, its start and its end
//   - election.go, leadership.go, handover.go, run.go: what an application calls
//   - record.go, voters.go: what a leader decides, and who votes
//   - observe.go, status.go, explain.go, stats.go: what others are told
//   - members.go, links.go: who is there, and whom this node has links to
package cluster
