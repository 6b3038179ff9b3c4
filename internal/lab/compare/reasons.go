package compare

// reasons say why another algorithm is better than ours, by topology.
var reasons = map[string]string{
	"process-crash":   "Scouting takes a round trip; chain-3 shows what for",
	"host-crash":      "Scouting, too. The others have two leaders in leader-isolated",
	"leader-isolated": "The next leader waits for the lease. All faster ones have two leaders",
	"quorum-loss": "Nodes that cannot win refuse the hub by rank, and it asks again after a random " +
		"wait. The faster ones know neither lease nor rank",
	"constrained": "As in quorum-loss, after the lease. All faster ones have two leaders",
	"restart-preferred": "Ours had elected the preferred node, so its first restart takes the leader; " +
		"ble and blazingmq had mostly elected another. bmqelect-without-scouting saves a round trip",
	"chain-3": "In one of 200 runs six heartbeats in a row, or their answers, were lost: 19 % each, " +
		"so 0.6 runs were to be expected. Six are a lease; without it ours may not lead on. " +
		"raft-checkquorum counts answers over seven or more, and has two leaders in leader-isolated",
	"chain-5": "As in chain-3; the quorum needs both of two followers. gmt needs no quorum",
}
