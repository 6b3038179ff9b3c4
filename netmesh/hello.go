package netmesh

import (
	"net"
	"net/netip"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// The versions of the protocol that this build speaks.
const (
	minVersion = 2
	version3   = 3 // adds evidence connections
	// version4 adds certificates and proofs of earlier links. Its links end only if an answer is
	// missing; older ones end if nothing comes for the idle time-out, so they need pings.
	version4   = 4
	version5   = 5 // adds records and notes
	version6   = 6 // adds beats of pairs
	maxVersion = version6
)

// RecordsVersion is the first PeerInfo.Version of builds that know records and notes.
const RecordsVersion = version5

const magic = "bmqelect"

// hello introduces a process: body of Hello, and of Welcome, where MinVersion
// and MaxVersion are the version agreed. A newer version may append fields.
type hello struct {
	Magic      string
	MinVersion uint
	MaxVersion uint
	Cluster    string
	Node       string
	Identity   []byte
	Boot       uint64
	Address    string // host:port that it listens on
	To         string // the node that it means to talk to
	Dial       uint64 // counts the dials of this process
	Probe      bool   // no link is wanted, only the Welcome
	// Evidence is, in the Welcome of a link, the key of its evidence connection. Only the Hello
	// of an evidence connection has it. Since version 3.
	Evidence []byte
	// Local and Remote are the ends of an evidence connection as the sender sees them.
	Local, Remote string
	Process       uint64 // random number of this process; 0: an older build, which tells none
	Meta          string // Config.Meta
	// Commitment is the hash of the sender's certificate, in both directions of the handshake of
	// an evidence connection. Since version 4.
	Commitment []byte
	// Proofs show that the sender is the process of earlier links, in the Hello and the Welcome
	// of a link. Since version 4, optional.
	Proofs []byte
	// Half is, in the Hello and the Welcome of a link, the sender's half of the number of the session;
	// 0 in an older build. Since version 6.
	Half uint32
}

// goodbye is the body of Refuse and Goodbye.
type goodbye struct {
	Reason uint8
	Text   string
}

// maxText is how much of an explanation travels, in bytes.
const maxText = 1 << 10

func (r *refusal) goodbye() *goodbye {
	return &goodbye{Reason: uint8(r.Reason), Text: r.Text[:min(len(r.Text), maxText)]}
}

// refusal returns what the peer said.
func (g *goodbye) refusal() *refusal {
	return &refusal{Reason: Reason(g.Reason), Text: words.Printable(g.Text, maxText), byPeer: true}
}

// ping is the body of Ping, of Join and, with the times, of Pong.
type ping struct {
	Number   uint64
	Received int64 // when the ping came, by the answerer's clock; ns
	Sent     int64 // when the pong left, by the same
	Wall     int64 // then, by its wall clock; Unix time in ns; for older builds
}

// join is the body of Join. It has the form of a ping, which older builds expect, and one
// field more.
type join struct {
	Number               uint64
	Received, Sent, Wall int64
	Proofs               []byte // as those of the Hello
}

// hello returns this process's introduction to a node.
func (m *Mesh) hello(to elector.NodeID, dial uint64) *hello {
	return &hello{
		Magic: magic, MinVersion: minVersion, MaxVersion: maxVersion,
		Cluster: m.cfg.Cluster, Node: string(m.cfg.Node), Identity: m.cfg.Identity[:], Boot: m.cfg.Boot,
		Address: m.advertised, To: string(to), Dial: dial, Process: m.number(to),
		Meta: m.cfg.Meta,
	}
}

// welcomeTo returns the Welcome for the process that sent h.
func (m *Mesh) welcomeTo(h *hello) *hello {
	w := m.hello(elector.NodeID(h.Node), h.Dial)
	w.MinVersion = min(h.MaxVersion, maxVersion)
	w.MaxVersion = w.MinVersion
	if h.Probe {
		w.Process = probed(w.Process, w.MaxVersion)
	}
	return w
}

// check reports why the process that sent h cannot be a peer. It checks what needs no memory of
// peers; judge does the rest.
func (m *Mesh) check(h *hello) *refusal {
	mine, me := uuid.UUID(m.cfg.Identity), m.cfg.Node
	switch {
	case h.Magic != magic:
		return refuse(ReasonGarbage, "magic %.20q, want %q", h.Magic, magic)
	case h.MinVersion > maxVersion || h.MaxVersion < minVersion:
		return refuse(ReasonVersion, "node %q speaks versions %d to %d, node %q %d to %d",
			h.Node, h.MinVersion, h.MaxVersion, me, minVersion, maxVersion)
	case h.Cluster != m.cfg.Cluster:
		return refuse(ReasonForeignCluster, "node %q belongs to cluster %q, node %q to %q",
			h.Node, h.Cluster, me, m.cfg.Cluster)
	case len(h.Identity) != len(mine), h.Boot == 0, elector.NameProblem(elector.NodeID(h.Node)) != "":
		return refuse(ReasonGarbage, "node %.260q with an identity of %d bytes and boot %d",
			h.Node, len(h.Identity), h.Boot)
	case [16]byte(h.Identity) == mine && h.Process != 0 &&
		h.Process != m.number(elector.NodeID(h.To)):
		return refuse(ReasonCopied, "node %q comes with identity %s, that of this node, %q: "+
			"its data directory is a copy of the one here", h.Node, mine, me)
	case [16]byte(h.Identity) == mine:
		return refuse(ReasonSelf, "identity %s is this node, %q", mine, me)
	case h.Node == string(me):
		return refuse(ReasonDuplicateName, "two nodes are called %q: identities %s and %s",
			h.Node, uuid.UUID(h.Identity), mine)
	}
	return nil
}

// info is what h, which has passed check, says about the process behind conn.
func (h *hello) info(conn net.Conn) PeerInfo {
	return PeerInfo{
		Node:     elector.NodeID(h.Node),
		Identity: uuid.UUID(h.Identity),
		Boot:     h.Boot,
		Remote:   conn.RemoteAddr().String(),
		Address:  reachable(h.Address, conn.RemoteAddr()),
		Version:  min(h.MaxVersion, maxVersion),
		Meta:     words.Printable(h.Meta, MaxMeta),
	}
}

// reachable fills the host of an address that names none in from the connection.
func reachable(address string, remote net.Addr) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	if host != "" && (err != nil || !ip.IsUnspecified()) {
		return address
	}
	seen, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		return ""
	}
	return net.JoinHostPort(seen, port)
}
