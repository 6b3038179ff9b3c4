package gossip

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/elector"
)

// Config names a node and the members that it looks for. Start copies it. The caller
// has checked the names and that the addresses are host:port.
type Config struct {
	// Cluster keeps foreign clusters apart: packets of another cluster are dropped.
	// 1 to 255 bytes. Required.
	Cluster string
	// Node is this node's name, unique in the cluster. Required.
	Node elector.NodeID
	// Bind is the host:port for TCP and UDP; port 0 lets the system choose.
	// An unspecified IPv6 host ("[::]:7946") needs Advertise. Required.
	Bind string
	// Advertise is the host:port told to the others. A name is resolved once, at
	// start. Port 0 means the bound port. Default: the bound address.
	Advertise string
	// Join lists the host:port of members to look for. A name is resolved again
	// at each try. May be empty (first node) and may contain this node itself.
	Join []string
	// KnownPeers lists gossip addresses that worked in an earlier run. They are
	// tried like Join, but their failures are not logged.
	KnownPeers []string
	// Voter reports whether a node may have a vote: such nodes are always accepted as members. Of
	// others at most 256 are. It must return at once. Default nobody.
	Voter func(elector.NodeID) bool
	// Keys encrypt packets and streams; see SetKeys. Default none.
	Keys Keys
	// Meta is sent to the others. Encoded it takes at most 512 bytes.
	Meta Meta
	// Timing holds the periods; zero fields get their default.
	Timing Timing
	// Logger is required to hear anything; nil discards.
	Logger hclog.Logger
	// OnChange is called with the current state of another member that changed, for one member
	// at a time and in order. While it runs, several changes of one member become one;
	// nothing else waits for it.
	OnChange func(Member)
	// Save saves the addresses at which members may be found after a restart, for KnownPeers.
	// After an error it is called again. Default: they are not saved.
	Save func(addrs []string) error
	// Blocked cuts this node off from the peers for which it returns true, for packets
	// and streams, sent and received. It is for fault injection, and must be quick and safe
	// for concurrent use. It is not called for addresses of unknown members. The default,
	// nil, cuts nothing.
	Blocked func(peer elector.NodeID) bool

	// For tests: resolve replaces DNS, streamTimeout the constant.
	resolve       func(ctx context.Context, hostport string) ([]netip.AddrPort, error)
	streamTimeout time.Duration
	compress      bool // as members of version 0.1 do
}

// Timing holds the periods of membership. The defaults suit loopback and a local network:
// among ten nodes a killed process is noticed after 2 to 4 s, and one that was restarted
// at another address is found as soon as that.
type Timing struct {
	Probe  time.Duration // between probes of a random member, which has half of it to answer
	Gossip time.Duration // between packets with news
	Sync   time.Duration // between exchanges of the whole state with one random member
	Retry  time.Duration // between tries of all addresses while alone; doubles up to 8 times
	Rejoin time.Duration // between tries of the addresses without a member, with other members
}

// withDefaults returns a copy of c with every default filled in.
func (c Config) withDefaults() Config {
	c.Join, c.KnownPeers = slices.Clone(c.Join), slices.Clone(c.KnownPeers)
	t := &c.Timing
	t.Probe = cmp.Or(t.Probe, 500*time.Millisecond)
	t.Gossip = cmp.Or(t.Gossip, 100*time.Millisecond)
	t.Sync = cmp.Or(t.Sync, 10*time.Second)
	t.Retry = cmp.Or(t.Retry, 500*time.Millisecond)
	t.Rejoin = cmp.Or(t.Rejoin, 10*time.Second)
	c.streamTimeout = cmp.Or(c.streamTimeout, defaultStreamTimeout)
	if c.resolve == nil {
		c.resolve = resolve
	}
	if c.OnChange == nil {
		c.OnChange = func(Member) {}
	}
	if c.Save == nil {
		c.Save = func([]string) error { return nil }
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}
