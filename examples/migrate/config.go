package migrate

import "github.com/bmqelect/bmqelect/cluster"

// config is that of one of three replicas.
func config(name, address string) cluster.Config {
	// snippet: config
	cfg := cluster.Config{
		Node:       cluster.NodeID(name), // such as reports-0; after a restart the same
		Voters:     []cluster.NodeID{"reports-0", "reports-1", "reports-2"},
		DataDir:    "/var/lib/reports", // a disk that is kept, a few megabytes
		Join:       []string{"reports-0.reports:7400", "reports-1.reports:7400"},
		GossipAddr: address + ":7400",
		MeshAddr:   address + ":7401",
		TLS:        cluster.TLSDir("/etc/reports/tls"), // bmqnode certs makes it
		Election:   cluster.ElectionConfig{AwaitCampaign: true},
	}
	// end
	return cfg
}
