package admin

import (
	"fmt"
	"net/http"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Headers that say who leads, for those who do not read the body.
const (
	leaderHeader = "Bmqelect-Leader"
	adminHeader  = "Bmqelect-Leader-Admin"
	termHeader   = "Bmqelect-Term"
)

// Leader is what a node that leads answers when asked for the leader.
type Leader struct {
	Group     string          `json:"group"`
	Leader    cluster.NodeID  `json:"leader"`
	AdminAddr string          `json:"admin_addr,omitempty"`
	Term      lsn.Term        `json:"term"`
	LSN       lsn.LSN         `json:"lsn"`                    // newest issued
	LeaseLeft cluster.Seconds `json:"lease_left_s,omitempty"` // absent: the lease has no end, as for an only voter
}

// NotLeader is what any other node answers: a problem that names the leader, as
// far as the node knows one.
type NotLeader struct {
	Problem
	Group     string         `json:"group"`
	Leader    cluster.NodeID `json:"leader,omitempty"`
	AdminAddr string         `json:"admin_addr,omitempty"` // of the leader
	Term      lsn.Term       `json:"term,omitempty"`
}

// getLeader answers with 200 on the leader while its lease is valid and with 503
// anywhere else, so that a load balancer can route by it.
func (s *Server) getLeader(w http.ResponseWriter, r *http.Request) {
	st := s.Node.Status()
	g, ok := find(w, st, groupOf(r))
	if !ok {
		return
	}
	if l, ok := leader(st, g); ok {
		nameLeader(w, l.Leader, l.AdminAddr, l.Term)
		answer(w, http.StatusOK, l)
		return
	}
	n := notLeader(st, g)
	nameLeader(w, n.Leader, n.AdminAddr, n.Term)
	respond(w, "application/problem+json", n.Status, n)
}

// leader is the node itself, if it leads and its lease is valid.
func leader(st cluster.Status, g cluster.GroupStatus) (Leader, bool) {
	return Leader{
		Group: g.Group, Leader: st.Node, AdminAddr: AddrOf(ownEntry(st)), Term: g.Term, LSN: g.LSN, LeaseLeft: g.LeaseLeft,
	}, g.Leading
}

func notLeader(st cluster.Status, g cluster.GroupStatus) NotLeader {
	n := NotLeader{Group: g.Group}
	why := g.Explanation
	switch g.Leader {
	case "":
	case st.Node:
		why = "its lease has run out"
	default:
		n.Leader, n.Term, n.AdminAddr = g.Leader, g.Term, adminOf(st, g.Leader)
		why = fmt.Sprintf("node %s does in term %d", g.Leader, g.Term)
	}
	n.Problem = newProblem(http.StatusServiceUnavailable, fmt.Errorf("node %s does not lead %s: %s", st.Node, g.Group, why))
	return n
}

// adminOf is the admin address of another member, if it is known.
func adminOf(st cluster.Status, id cluster.NodeID) string {
	for _, m := range st.Members {
		if m.Node == id {
			return AddrOf(m)
		}
	}
	return ""
}

func nameLeader(w http.ResponseWriter, leader cluster.NodeID, addr string, term lsn.Term) {
	if leader == "" {
		return
	}
	w.Header().Set(leaderHeader, string(leader))
	w.Header().Set(termHeader, term.String())
	if addr != "" {
		w.Header().Set(adminHeader, addr)
	}
}
