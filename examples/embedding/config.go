package embedding

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// configuration is that of one of three nodes.
func configuration() cluster.Config {
	// snippet: configuration
	cfg := cluster.Config{
		Node:       "a",                             // its own on every node
		Voters:     []cluster.NodeID{"a", "b", "c"}, // the same on every node
		DataDir:    "/var/lib/reports/elector",      // on a disk that is kept
		Join:       []string{"a.example:7400", "b.example:7400", "c.example:7400"},
		GossipAddr: "10.0.0.1:7400",                    // TCP and UDP
		MeshAddr:   "10.0.0.1:7401",                    // TCP and UDP
		TLS:        cluster.TLSDir("/etc/reports/tls"), // bmqnode certs makes it
		Election:   cluster.ElectionConfig{AwaitCampaign: true},
	}
	// end
	return cfg
}

// timers suits machines that pause for a second now and then, and work that needs
// a second to stop.
func timers() cluster.ElectionConfig {
	// snippet: timers
	timing := elector.Article()
	timing.Lease = 3 * time.Second       // longer than any pause that is normal here
	timing.HeartbeatMissCount = 6        // 6 x 500 ms: at least the lease
	timing.InitialWait = 5 * time.Second // at least the lease and its drift
	election := cluster.ElectionConfig{
		Timing:     timing,                  // the same on every node
		StopMargin: 1500 * time.Millisecond, // the work stops in less
	}
	// end
	return election
}

// preferred is a voter that should lead whenever it can.
func preferred() cluster.ElectionConfig {
	// snippet: priority
	election := cluster.ElectionConfig{
		Priority: 10,               // 0 on the others: higher wins where two stand at once
		Takeover: 10 * time.Minute, // the same on every node; without it a leader stays
	}
	// end
	return election
}
