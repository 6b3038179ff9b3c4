package main

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

const (
	// twinLook is the time between two looks for a twin, twinRepeat that between
	// two lines about it.
	twinLook   = 2 * time.Second
	twinRepeat = time.Minute
)

// watchForTwin says loudly that this process is the second one of its name. Voters
// let in the first only, so one that has a link to a voter is not it, and the watch
// ends. A newcomer among the members may not know the first yet, and proves nothing.
func watchForTwin(node *cluster.Node, log hclog.Logger) {
	look := time.NewTicker(twinLook)
	defer look.Stop()
	var said time.Time
	for {
		select {
		case <-node.Done():
			return
		case now := <-look.C:
			st := node.Status()
			if connected(st) {
				return
			}
			if by := refusedBy(st); len(by) > 0 && now.Sub(said) >= twinRepeat {
				said = now
				log.Error("this process is the second of its name: the members refuse it, and it takes no part",
					"node", st.Node, "members", by, "advice", "stop it or rename it; if it is the right one, stop the other")
			}
		}
	}
}

func connected(st cluster.Status) bool {
	for _, m := range st.Members {
		if m.Voter && m.Link == "up" {
			return true
		}
	}
	return false
}

// refusedBy are the members with which this node disagrees on who has its name.
func refusedBy(st cluster.Status) (by []cluster.NodeID) {
	for _, f := range st.Findings {
		if f.Kind == findings.NameTwice && f.Peer != st.Node {
			by = append(by, f.Peer)
		}
	}
	return by
}
