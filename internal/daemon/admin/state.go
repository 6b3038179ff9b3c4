package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
)

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.Node.Status())
}

// Members is the answer to GET /v1/members.
type Members struct {
	Node    cluster.NodeID         `json:"node"`    // who answers
	Members []cluster.MemberStatus `json:"members"` // sorted by name, who answers among them
}

func (s *Server) getMembers(w http.ResponseWriter, _ *http.Request) {
	st := s.Node.Status()
	all := append(st.Members, ownEntry(st))
	slices.SortFunc(all, func(a, b cluster.MemberStatus) int { return strings.Compare(string(a.Node), string(b.Node)) })
	for i := range all {
		all[i].AdminAddr = AddrOf(all[i])
	}
	answer(w, http.StatusOK, Members{Node: st.Node, Members: all})
}

// ownEntry is the node among its members. It has no link to itself.
func ownEntry(st cluster.Status) cluster.MemberStatus {
	return cluster.MemberStatus{
		Node: st.Node, Voter: slices.ContainsFunc(st.Groups, func(g cluster.GroupStatus) bool { return slices.Contains(g.Voters, st.Node) }),
		Gossip: "alive", Version: st.Version, Link: "self", LinkFor: st.Uptime,
		GossipAddr: st.GossipAddr, MeshAddr: st.MeshAddr, AdminAddr: st.AdminAddr,
	}
}

// AddrOf is where a member's admin side can be asked: what the member says, at the
// address of its gossip if it listens on every interface; "" if it says nothing.
func AddrOf(m cluster.MemberStatus) string {
	host, port, err := net.SplitHostPort(m.AdminAddr)
	if err != nil {
		return m.AdminAddr
	}
	ip, err := netip.ParseAddr(host)
	gossip, _, other := net.SplitHostPort(m.GossipAddr)
	if host != "" && (err != nil || !ip.IsUnspecified()) || other != nil {
		return m.AdminAddr
	}
	return net.JoinHostPort(gossip, port)
}

// Elections is the answer to GET /v1/elections.
type Elections struct {
	Node      cluster.NodeID        `json:"node"` // who answers
	Elections []cluster.GroupStatus `json:"elections"`
}

func (s *Server) getElections(w http.ResponseWriter, _ *http.Request) {
	st := s.Node.Status()
	answer(w, http.StatusOK, Elections{Node: st.Node, Elections: st.Groups})
}

func (s *Server) getElection(w http.ResponseWriter, r *http.Request) {
	if g, ok := find(w, s.Node.Status(), groupOf(r)); ok {
		answer(w, http.StatusOK, g)
	}
}

// find returns an election of the node; it answers the request itself if there
// is no such.
func find(w http.ResponseWriter, st cluster.Status, group string) (cluster.GroupStatus, bool) {
	for _, g := range st.Groups {
		if g.Group == group {
			return g, true
		}
	}
	refuse(w, http.StatusNotFound, noElection(st.Node, group))
	return cluster.GroupStatus{}, false
}

func noElection(node cluster.NodeID, group string) error {
	return fmt.Errorf("node %s has no election %q open; /v1/elections lists those that it has", node, group)
}

// getHealth asks the driver, so that a node which hangs does not answer.
func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	if _, err := s.Node.Lookup(cluster.DefaultGroup); err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	ok(w)
}

// getReady says whether every election of the node has a leader that it knows.
func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) {
	for _, g := range s.Node.Status().Groups {
		if g.Leader == "" {
			refuse(w, http.StatusServiceUnavailable, fmt.Errorf("group %s: %s", g.Group, g.Explanation))
			return
		}
	}
	ok(w)
}

func ok(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, "ok")
}
