package service

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh"
)

const (
	// duplicateLook is the time between two looks for another process of this name,
	// duplicateRepeat that between two log lines about it.
	duplicateLook   = 2 * time.Second
	duplicateRepeat = time.Minute
)

// watchForDuplicate logs an error if this process is the second one of its name. Voters
// let in the first only, so a process that has a link to a voter is not the second, and
// the watch ends. A newcomer among the members may not know the first yet, and proves
// nothing.
func watchForDuplicate(node *cluster.Node, log hclog.Logger) {
	look := time.NewTicker(duplicateLook)
	defer look.Stop()
	var logged time.Time
	for {
		select {
		case <-node.Done():
			return
		case now := <-look.C:
			st := node.Status()
			for _, m := range st.Members {
				if m.Voter && m.Link == "up" {
					return
				}
			}
			var refusedBy []cluster.NodeID
			for _, f := range st.Findings {
				if f.Kind == netmesh.FindingNameTwice && f.Peer != st.Node {
					refusedBy = append(refusedBy, f.Peer)
				}
			}
			if len(refusedBy) > 0 && now.Sub(logged) >= duplicateRepeat {
				logged = now
				log.Error("this process is the second of its name: the members refuse it, and it takes no part",
					"node", st.Node, "members", refusedBy,
					"advice", "stop it or rename it; if it is the right one, stop the other")
			}
		}
	}
}
