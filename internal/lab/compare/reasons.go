package compare

// reasons say why another algorithm is better than ours, by topology.
var reasons = map[string]string{
	"process-crash": "Scouting takes a round trip; what for is to be seen in chain-3",
	"host-crash": "Likewise. etcd-lease asks only its store, which does not fail here; the others " +
		"have two leaders in leader-isolated",
	"leader-isolated": "The next leader waits for the lease. All that are faster have two leaders",
	"quorum-loss": "Nodes that cannot win refuse the hub by rank, and it asks again after a random " +
		"wait. The faster ones know neither lease nor rank",
	"constrained":       "Likewise, after the lease. All that are faster have two leaders",
	"restart-preferred": "A round trip, as in process-crash. ble had another leader",
}
