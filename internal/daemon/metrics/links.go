package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/netmesh"
)

// maxPeers bounds the members that have series of their own, seven each: the voters, and
// the first of the observers by name.
const maxPeers = 100

var (
	linkUp    = gauge("link_up", "1 while there is a link to the member.", "peer")
	linkRTT   = gauge("link_rtt_seconds", "Smoothed round-trip time of pings.", "peer")
	linkLoss  = gauge("link_loss_ratio", "Share of the recent pings without an answer.", "peer")
	clockRate = gauge("link_clock_rate_ratio",
		"How much faster than this node's clock the peer's runs.", "peer")
	clockDoubt = gauge("link_clock_rate_doubt_ratio", "Most by which the clock rate may be wrong.",
		"peer")
	queued        = gauge("link_queue_messages", "Messages that wait to be sent.", "peer")
	linkBytes     = counter("link_bytes_total", "Bytes that passed.", "peer", "direction")
	peersUnlisted = gauge("peers_unlisted", "Members without series of their own.")
)

// peers are the links that get series of their own, and how many do not.
type peers struct {
	links    []netmesh.LinkStatus
	unlisted int
}

func listedLinks(status *cluster.Status, all []netmesh.LinkStatus) peers {
	votes := map[cluster.NodeID]bool{}
	for _, m := range status.Members {
		votes[m.Node] = m.Voter
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b netmesh.LinkStatus) int {
		switch va, vb := votes[a.Peer.Node], votes[b.Peer.Node]; {
		case va == vb:
			return 0
		case va:
			return -1
		}
		return 1
	})
	n := min(len(all), maxPeers)
	return peers{all[:n], len(all) - n}
}

func collectLinks(out chan<- prometheus.Metric, p peers, clocks map[cluster.NodeID]findings.Clock) {
	send(out, peersUnlisted, p.unlisted)
	for _, l := range p.links {
		peer := string(l.Peer.Node)
		sendTruth(out, linkUp, l.Up, peer)
		send(out, queued, l.Queued, peer)
		send(out, linkBytes, l.BytesIn, peer, "in")
		send(out, linkBytes, l.BytesOut, peer, "out")
		if l.Up {
			collectPings(out, peer, l, clocks[l.Peer.Node])
		}
	}
}

// perMillion is how many parts per million are the whole.
const perMillion = 1e6

// collectPings puts out what the pings of a link tell.
func collectPings(out chan<- prometheus.Metric, peer string, l netmesh.LinkStatus,
	c findings.Clock) {
	send(out, linkLoss, l.Loss, peer)
	if l.RTT > 0 {
		send(out, linkRTT, l.RTT.Seconds(), peer)
	}
	if c.Doubt > 0 {
		send(out, clockRate, c.Rate/perMillion, peer)
		send(out, clockDoubt, c.Doubt/perMillion, peer)
	}
}
