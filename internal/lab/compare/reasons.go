package compare

// reasons say why another algorithm is better than ours, by topology, or by the name of a metric
// wherever that is lost.
var reasons = map[string]string{
	"process-crash": "Scouting takes a round trip. Without it a node that lost a link unseats the " +
		"leader: chain-3 shows it",
	"host-crash": "Scouting, too. gmt and Omega ask no majority: two leaders in leader-isolated. " +
		"On lossy links ours plays with profile wan, which suits round trips of 300 ms; the sources' " +
		"timers suit these links. Ours has no profile in between",
	"leader-isolated": "The next leader waits for the lease. All that are faster with equal timers " +
		"have two leaders. With own timers as in host-crash",
	"quorum-loss": "With a store the old leader leads on: it needs only the store; 1 s to 2 s later " +
		"the hub's replica leads that. Ours must reach a majority itself, as the hub alone does. " +
		"There, nodes that cannot win refuse the hub by rank, and it asks again after a random wait; " +
		"gmt and kraft know neither rank nor lease. With own timers as in host-crash",
	"constrained": "As in quorum-loss. All that are faster wait for no lease: they have two leaders, " +
		"here or in leader-isolated",
	"restart-preferred": "Ours had elected the preferred node, so its first restart takes the leader; " +
		"others had mostly elected another. bmqelect-without-scouting saves a round trip",
	"demotions_per_hour": "Six heartbeats in a row, or their answers, were lost: where 10 % are, that " +
		"is to be expected in 3 of 1,000 runs. Six are a lease, without which ours may not lead on. " +
		"Others count answers for longer, or need no majority",
}
