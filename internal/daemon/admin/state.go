package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/lsn"
)

func (s *Server) getStatus(w http.ResponseWriter, r *http.Request) {
	sel, err := selectionIn(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, s.Node.StatusOf(sel))
}

// getHealth asks the driver: a node that hangs must not answer.
func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	_, err := s.Node.Lookup(cluster.DefaultGroup)
	answerProbe(w, err)
}

// getReady says whether every election of the node has a leader that it knows, and counts the node,
// if it has its vote: a rolling upgrade must not go on where a voter came back on another disk.
func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) {
	st := s.Node.StatusOf(summary)
	if sums := st.Elections; sums != nil && sums.NotCounted > 0 {
		answerProbe(w, fmt.Errorf("in %d elections this node has no vote that counts: its data directory is "+
			"not the one that the record names", sums.NotCounted))
		return
	}
	for _, g := range st.Groups {
		if g.Leader == "" || g.Record != nil && slices.Contains(g.Record.Uncounted, st.Node) {
			answerProbe(w, fmt.Errorf("group %s: %s", g.Group, g.Explanation))
			return
		}
	}
	answerProbe(w, nil)
}

func answerProbe(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, "ok")
}

// GroupIn is a node's part in an election, or the zero value.
func GroupIn(st cluster.Status, group string) cluster.GroupStatus {
	for _, g := range st.Groups {
		if g.Group == group {
			return g
		}
	}
	return cluster.GroupStatus{}
}

// MemberIn is another member as a node sees it, or the zero value.
func MemberIn(st cluster.Status, id cluster.NodeID) cluster.MemberStatus {
	for _, m := range st.Members {
		if m.Node == id {
			return m
		}
	}
	return cluster.MemberStatus{}
}

// AddrOf is the address of a member's admin side: the one that the member announces or, if that
// means every interface, its port at the host of the member's gossip. "" if it announces none.
func AddrOf(m cluster.MemberStatus) string {
	host, port, err := net.SplitHostPort(m.AdminAddr)
	if err != nil {
		return m.AdminAddr
	}
	ip, err := netip.ParseAddr(host)
	everywhere := host == "" || err == nil && ip.IsUnspecified()
	gossip, _, err := net.SplitHostPort(m.GossipAddr)
	if !everywhere || err != nil {
		return m.AdminAddr
	}
	return net.JoinHostPort(gossip, port)
}

// Headers that name the leader, for clients that do not read the body.
const (
	leaderHeader = "Bmqelect-Leader"
	adminHeader  = "Bmqelect-Leader-Admin"
	termHeader   = "Bmqelect-Term"
)

// Leader is the answer of a leader to GET /v1/leader, and the JSON of the command `leader`.
type Leader struct {
	Group     string         `json:"group"`
	Leader    cluster.NodeID `json:"leader"`
	Meta      string         `json:"meta,omitempty"` // cluster.Config.Meta
	AdminAddr string         `json:"admin_addr,omitempty"`
	Term      lsn.Term       `json:"term"`
	LSN       lsn.LSN        `json:"lsn"` // newest issued
	// absent if the lease has no end, as for an only voter, or if a follower answers
	LeaseLeft cluster.Seconds `json:"lease_left_s,omitempty"`
	Confirmed bool            `json:"confirmed,omitempty"` // by a quorum, after it was asked
	Reason    string          `json:"reason,omitempty"`    // why Leader is "", for people
}

// NotLeader is the answer of any other node: a problem that names the leader if the node knows
// one.
type NotLeader struct {
	Problem
	Group     string         `json:"group"`
	Leader    cluster.NodeID `json:"leader,omitempty"`
	Meta      string         `json:"meta,omitempty"`       // of the leader
	AdminAddr string         `json:"admin_addr,omitempty"` // of the leader
	Term      lsn.Term       `json:"term,omitempty"`
}

// LeaderIn is the leader of an election as a node knows it; its Leader is "" if it knows none.
func LeaderIn(st cluster.Status, group string) Leader { return leaderOf(st, GroupIn(st, group)) }

func leaderOf(st cluster.Status, g cluster.GroupStatus) Leader {
	m := MemberIn(st, g.Leader)
	if g.Leader == st.Node {
		m = cluster.MemberStatus{AdminAddr: st.AdminAddr, GossipAddr: st.GossipAddr}
	}
	return Leader{
		Group: g.Group, Leader: g.Leader, Meta: g.LeaderMeta, AdminAddr: AddrOf(m), Term: g.Term,
		LSN: g.LSN, LeaseLeft: g.LeaseLeft,
	}
}

// getLeader answers with 200 on the leader while its lease is valid and with 503
// anywhere else, so that a load balancer can route by it. If the request asks so, a quorum must
// confirm it.
func (s *Server) getLeader(w http.ResponseWriter, r *http.Request) {
	group := cmp.Or(r.PathValue("group"), cluster.DefaultGroup)
	only := cluster.Selection{Group: group}
	st := s.Node.StatusOf(only)
	g := GroupIn(st, group)
	if g.Group == "" {
		refuse(w, http.StatusNotFound, noElection(st.Node, group))
		return
	}
	var unconfirmed error
	if g.Leading {
		l := leaderOf(st, g)
		if l.Confirmed = r.URL.Query().Has("confirm"); l.Confirmed {
			unconfirmed = s.confirm(r.Context(), g.Group)
		}
		if unconfirmed == nil {
			setLeader(w, l)
			answer(w, l)
			return
		}
		st = s.Node.StatusOf(only)
		g = GroupIn(st, group)
	}
	n := notLeader(st, g)
	if unconfirmed != nil {
		n.Problem = newProblem(http.StatusServiceUnavailable, unconfirmed)
	}
	setLeader(w, Leader{Leader: n.Leader, AdminAddr: n.AdminAddr, Term: n.Term})
	respond(w, "application/problem+json", n.Status, n)
}

// confirm lets a quorum confirm that this node leads.
func (s *Server) confirm(ctx context.Context, group string) error {
	e, err := s.Node.Lookup(group)
	if err == nil {
		err = e.Confirm(ctx)
	}
	return err
}

func notLeader(st cluster.Status, g cluster.GroupStatus) NotLeader {
	why, l := g.Explanation, leaderOf(st, g)
	switch l.Leader {
	case "":
		l = Leader{}
	case st.Node:
		why, l = "its lease has run out", Leader{}
	default:
		why = fmt.Sprintf("node %s does in term %d", l.Leader, l.Term)
	}
	return NotLeader{newProblem(http.StatusServiceUnavailable,
		fmt.Errorf("node %s does not lead %s: %s", st.Node, g.Group, why)),
		g.Group, l.Leader, l.Meta, l.AdminAddr, l.Term}
}

func noElection(node cluster.NodeID, group string) error {
	return fmt.Errorf("node %s has no election %q open; /v1/status lists those that it has", node,
		group)
}

func setLeader(w http.ResponseWriter, l Leader) {
	if l.Leader == "" {
		return
	}
	w.Header().Set(leaderHeader, string(l.Leader))
	w.Header().Set(termHeader, l.Term.String())
	if l.AdminAddr != "" {
		w.Header().Set(adminHeader, l.AdminAddr)
	}
}

// Recording is the newest part of what happened to a node, oldest first.
type Recording struct {
	Records []recording.Record `json:"records"`
	Damaged int                `json:"damaged,omitempty"` // records that cannot be read
}

// History is the leaderships that one node has seen, oldest first.
type History struct {
	Leaderships []recording.Leadership `json:"leaderships"`
}

func (s *Server) getRecording(w http.ResponseWriter, _ *http.Request) {
	if records, damaged, ok := s.recorded(w, recording.Recording); ok {
		answer(w, Recording{append([]recording.Record{}, records...), damaged})
	}
}

func (s *Server) getHistory(w http.ResponseWriter, _ *http.Request) {
	if records, _, ok := s.recorded(w, recording.History); ok {
		answer(w, History{append([]recording.Leadership{}, recording.Leaderships(records)...)})
	}
}

// recorded reads one of the node's logs, or answers why it cannot.
func (s *Server) recorded(w http.ResponseWriter, name recording.Name) (
	records []recording.Record, damaged int, ok bool,
) {
	err := errors.New("this server was not told where the node's data directory is")
	if s.DataDir != "" {
		records, damaged, err = recording.Read(s.DataDir, name)
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
	}
	return records, damaged, err == nil
}
