package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Headers that say who leads, for clients that do not read the body.
const (
	leaderHeader = "Bmqelect-Leader"
	adminHeader  = "Bmqelect-Leader-Admin"
	termHeader   = "Bmqelect-Term"
)

// Leader is what a node that leads answers when asked for the leader.
type Leader struct {
	Group     string         `json:"group"`
	Leader    cluster.NodeID `json:"leader"`
	AdminAddr string         `json:"admin_addr,omitempty"`
	Term      lsn.Term       `json:"term"`
	LSN       lsn.LSN        `json:"lsn"` // newest issued
	// absent: the lease has no end, as for an only voter
	LeaseLeft cluster.Seconds `json:"lease_left_s,omitempty"`
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
	st, group := s.Node.Status(), cmp.Or(r.PathValue("group"), cluster.DefaultGroup)
	i := slices.IndexFunc(st.Groups, func(g cluster.GroupStatus) bool { return g.Group == group })
	if i < 0 {
		refuse(w, http.StatusNotFound, noElection(st.Node, group))
		return
	}
	g := st.Groups[i]
	if g.Leading {
		own := AddrOf(cluster.MemberStatus{AdminAddr: st.AdminAddr, GossipAddr: st.GossipAddr})
		setLeader(w, st.Node, own, g.Term)
		answer(w, Leader{
			Group: g.Group, Leader: st.Node, AdminAddr: own, Term: g.Term, LSN: g.LSN,
			LeaseLeft: g.LeaseLeft,
		})
		return
	}
	n := notLeader(st, g)
	setLeader(w, n.Leader, n.AdminAddr, n.Term)
	respond(w, "application/problem+json", n.Status, n)
}

func notLeader(st cluster.Status, g cluster.GroupStatus) NotLeader {
	n := NotLeader{Group: g.Group}
	why := g.Explanation
	switch g.Leader {
	case "":
	case st.Node:
		why = "its lease has run out"
	default:
		n.Leader, n.Term = g.Leader, g.Term
		for _, m := range st.Members {
			if m.Node == g.Leader {
				n.AdminAddr = AddrOf(m)
			}
		}
		why = fmt.Sprintf("node %s does in term %d", g.Leader, g.Term)
	}
	n.Problem = newProblem(http.StatusServiceUnavailable,
		fmt.Errorf("node %s does not lead %s: %s", st.Node, g.Group, why))
	return n
}

func noElection(node cluster.NodeID, group string) error {
	return fmt.Errorf("node %s has no election %q open; /v1/status lists those that it has", node,
		group)
}

func setLeader(w http.ResponseWriter, leader cluster.NodeID, addr string, term lsn.Term) {
	if leader == "" {
		return
	}
	w.Header().Set(leaderHeader, string(leader))
	w.Header().Set(termHeader, term.String())
	if addr != "" {
		w.Header().Set(adminHeader, addr)
	}
}
