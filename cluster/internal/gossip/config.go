package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// Config says who a node is and whom it looks for. Start copies it.
type Config struct {
	// Cluster keeps foreign clusters apart: packets of another cluster are dropped.
	// 1 to 255 bytes. Required.
	Cluster string
	// Node is this node's name, unique in the cluster; see elector.NameProblem. Required.
	Node elector.NodeID
	// Bind is the host:port for TCP and UDP; port 0 lets the system choose.
	// An unspecified IPv6 host ("[::]:7946") needs Advertise. Required.
	Bind string
	// Advertise is the host:port told to the others. A name is resolved once, at
	// start. Port 0 means the bound port. Default: what Bind came to.
	Advertise string
	// Join lists the host:port of members to look for. A name is resolved again
	// at each try. May be empty (first node) and may contain this node itself.
	Join []string
	// KnownPeers lists gossip addresses that worked in an earlier run. They are
	// tried like Join, but nobody is told when they fail.
	KnownPeers []string
	// Voters are let in however many members there are; of others at most 256 are.
	Voters []elector.NodeID
	// Meta is told to the others; see UpdateMeta.
	Meta Meta
	// Timing holds the periods; zero fields get LAN's value.
	Timing Timing
	// Logger is required to hear anything; nil discards.
	Logger hclog.Logger
	// OnEvent hears of changes, one at a time and in order. While it is busy, the
	// changes of one member are merged into its latest; nothing else waits for it.
	OnEvent func(Event)
	// Blocked cuts this node off from peers for which it returns true, for packets
	// and streams, sent and received. It is for tests and fault injection, must be
	// quick and safe for concurrent use. peer is empty while only the address is
	// known; addr of an incoming stream has a port that means nothing. nil, the
	// default, cuts nothing.
	Blocked func(peer elector.NodeID, addr string) bool

	// Found hears that something between this node and another one must be mended by
	// a person, again and again for as long as it is so. It is called under a lock of
	// the library: it must be quick, and safe for concurrent use. peer is the name that
	// the other end goes by, and like detail it may be a stranger's words. nil: nobody hears.
	Found func(kind findings.Kind, peer elector.NodeID, detail string)

	// For tests: resolve stands in for DNS, streamTimeout for the constant.
	resolve       func(ctx context.Context, hostport string) ([]netip.AddrPort, error)
	streamTimeout time.Duration
}

// Timing holds the periods of membership. The zero value of a field means LAN's.
type Timing struct {
	Probe  time.Duration // one random member is probed this often; half of it, at most 500 ms, is the time to answer
	Gossip time.Duration // news are passed on this often
	Sync   time.Duration // whole state is exchanged with one random member this often
	Retry  time.Duration // a node that is alone tries its addresses after this, doubling up to 8 times this
	Rejoin time.Duration // a node in company tries the addresses that are not members this often
}

// LAN returns the periods that suit loopback and a local network: among ten nodes
// a killed process is noticed after 2 to 4 s, and one that was restarted at another
// address is found as soon as that.
func LAN() Timing {
	return Timing{
		Probe:  500 * time.Millisecond,
		Gossip: 100 * time.Millisecond,
		Sync:   10 * time.Second,
		Retry:  500 * time.Millisecond,
		Rejoin: 10 * time.Second,
	}
}

func (t Timing) withDefaults() Timing {
	lan := LAN()
	for _, f := range []struct{ field, preset *time.Duration }{
		{&t.Probe, &lan.Probe}, {&t.Gossip, &lan.Gossip}, {&t.Sync, &lan.Sync},
		{&t.Retry, &lan.Retry}, {&t.Rejoin, &lan.Rejoin},
	} {
		if *f.field == 0 {
			*f.field = *f.preset
		}
	}
	return t
}

// Validate reports every problem that can be seen without touching the network.
func (c *Config) Validate() error {
	errs := []error{
		checkCluster(c.Cluster),
		checkNode(c.Node),
		checkHostPort("Bind", c.Bind, 0),
		c.Timing.validate(),
	}
	if c.Advertise != "" {
		errs = append(errs, checkHostPort("Advertise", c.Advertise, 0))
	}
	for i, addr := range c.Join {
		errs = append(errs, checkHostPort(fmt.Sprintf("Join[%d]", i), addr, 1))
	}
	if _, err := encodeMeta(c.Meta.wire(true)); err != nil {
		errs = append(errs, fmt.Errorf("Meta: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("gossip configuration of node %q: %w", c.Node, err)
	}
	return nil
}

func (t Timing) validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"Probe": t.Probe, "Gossip": t.Gossip, "Sync": t.Sync, "Retry": t.Retry, "Rejoin": t.Rejoin,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("the period Timing.%s is %v: must be positive, or 0 for the default", name, d))
		}
	}
	return errors.Join(errs...)
}

func checkCluster(name string) error {
	if most := memberlist.LabelMaxSize; name == "" || len(name) > most {
		return fmt.Errorf("%s %q has %d bytes: must have 1 to %d", "Cluster", name, len(name), most)
	}
	return nil
}

func checkNode(id elector.NodeID) error {
	if bad := elector.NameProblem(id); bad != "" {
		return fmt.Errorf("%s %q: the name is %s", "Node", id, bad)
	}
	return nil
}

func checkHostPort(field, value string, least int) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%s %q is not host:port, like 127.0.0.1:7946 or [::1]:7946: %w", field, value, err)
	}
	if host == "" {
		return fmt.Errorf("%s %q names no host: write 0.0.0.0 for all interfaces", field, value)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < least || n > 65535 {
		return fmt.Errorf("%s %q: port %q must be a number from %d to 65535", field, value, port, least)
	}
	return nil
}
