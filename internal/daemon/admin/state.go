package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/bmqelect/bmqelect/cluster"
)

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) { answer(w, s.Node.Status()) }

// getHealth asks the driver, so that a node which hangs does not answer.
func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	_, err := s.Node.Lookup(cluster.DefaultGroup)
	answerProbe(w, err)
}

// getReady says whether every election of the node has a leader that it knows.
func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) {
	for _, g := range s.Node.Status().Groups {
		if g.Leader == "" {
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

// AddrOf is where a member's admin side can be asked: what the member says, at the
// address of its gossip if it listens on every interface; "" if it says nothing.
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
