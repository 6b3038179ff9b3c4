package service

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

// The time between two looks for a duplicate name, and between two log lines about it.
const (
	duplicateLook   = 2 * time.Second
	duplicateRepeat = time.Minute
)

// watchForDuplicate logs an error while this process is the second one of its name.
// Voters accept the first only: a node that has a link to a voter is not the second, and
// the watch ends. A link to an observer proves nothing: it may not know the first yet.
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
			var by []cluster.NodeID
			for _, f := range st.Findings {
				if f.Kind == findings.NameTwice && f.Peer != st.Node {
					by = append(by, f.Peer)
				}
			}
			if len(by) > 0 && now.Sub(logged) >= duplicateRepeat {
				logged = now
				log.Error("this process is the second of its name: the members refuse it, and it takes no part",
					"node", st.Node, "members", by,
					"advice", "stop it or rename it; if it is the right one, stop the other")
			}
		}
	}
}
