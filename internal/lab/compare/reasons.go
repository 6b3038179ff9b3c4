package compare

// reasons say why another algorithm is better than ours, by topology.
var reasons = map[string]string{
	"process-crash": "Scouting takes a round trip; what for is to be seen in chain-3",
	"host-crash": "Likewise. etcd-lease asks only its store, which does not fail here; the others " +
		"have two leaders in leader-isolated",
	"leader-isolated": "The next leader waits for the lease. All that are faster have two leaders",
	"quorum-loss": "Nodes that cannot win refuse the hub by rank, and it asks again after a random " +
		"wait. The faster ones know neither lease nor rank",
	"constrained": "Likewise, after the lease. All that are faster have two leaders",
	"restart-preferred": "Ours had elected the preferred node, so its first restart takes the leader; " +
		"ble and blazingmq had mostly elected another. bmqelect-without-scouting saves a round trip",
	"chain-3": "Once in 200 runs six heartbeats in a row, or their answers, were lost: 19 % each, so " +
		"0.6 times were to be expected. That is a lease, and without one ours may not go on. " +
		"raft-checkquorum counts answers over seven or more, and has two leaders in leader-isolated",
	"chain-5": "Likewise, with two followers, both of which the quorum needs. gmt needs no quorum",
}
