package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
	"github.com/bmqelect/bmqelect/scouting"
)

// NodeID names a member of the cluster.
type NodeID = elector.NodeID

// Defaults of Config.
const (
	DefaultCluster = certs.DefaultCluster
	DefaultGroup   = "default"

	defaultGossipAddr = "127.0.0.1:7400"
	defaultMeshAddr   = "127.0.0.1:7401"
)

// Config is the configuration of a node. The same one serves its first start and every later one.
type Config struct {
	// Cluster names the cluster; nodes of different clusters never mix.
	// Default DefaultCluster.
	Cluster string
	// Node is this node's name, unique in the cluster. Required.
	Node NodeID
	// Voters are the nodes that elect, the same list on every node, at most
	// scouting.MaxVoters. A node that is not among them is an observer. Voters
	// that were declared lost on this node (package recovery) do not count. In an
	// election with a record that names the voters instead: see Node.AddVoter. Required,
	// unless Join is set: a node without Voters is an observer until it is made a voter.
	Voters []NodeID
	// DataDir holds the durable state: identity, boot counter, term. One process
	// at a time may use it. It is made if absent. Required.
	DataDir string
	// MinTerm is the lowest term that this node has as a voter. Set it on every node after the
	// data directories of all nodes were lost, above all terms that fences have seen. It lowers
	// no term. Default 0: the term on the disk counts.
	MinTerm lsn.Term

	// Join are addresses (host:port) of any other members' gossip; names are
	// resolved again at every try. May be empty on a node that others join.
	Join []string
	// GossipAddr and MeshAddr are where this node listens (host:port, port 0
	// picks one). Defaults 127.0.0.1:7400 (TCP and UDP) and 127.0.0.1:7401 (TCP).
	GossipAddr, MeshAddr string
	// Network, if set, makes and accepts the connections between members, for overlay networks and
	// tunnels; addresses are then what it understands, as host:port. Its dials must fail with
	// syscall.ECONNREFUSED only if nothing listens there. Gossip does not use it: set Peers, too.
	// Default TCP.
	Network netmesh.Network `json:"-"`
	// Peers are the mesh addresses (host:port) of the other members, by name. With it there is no
	// gossip: Join and GossipAddr are not used, and a member that is not in the Peers of any other
	// must have these in its own. Default none: gossip finds the members.
	Peers map[NodeID]string
	// AdvertiseGossip and AdvertiseMesh are the addresses that others are told,
	// where they differ from those above. Default: the bound address.
	AdvertiseGossip, AdvertiseMesh string

	// Election says how this node takes part in the default election.
	Election ElectionConfig
	// Prefixes say how it takes part in elections whose names begin with a key; the longest one
	// counts. Such an election opens by itself when another voter stands or leads in it, or by
	// Node.Open. Have the same prefixes on every node. Set AwaitCampaign in them if elections are to
	// close when nobody campaigns any more: without it some voter always leads. Where Priority and
	// Takeover are 0, Rendezvous is the priority: it spreads the leaders. Default none.
	Prefixes map[string]ElectionConfig
	// PrefixLimit bounds how many elections are open because another voter asked for them. Default
	// 100,000.
	PrefixLimit int
	// PrefixIdle is after what time such an election closes here if nobody leads in it, no message of
	// it came, and nobody on this node campaigns, or has got it from Node.Open. It opens again when
	// it is needed. At least a second. Default 10 minutes.
	PrefixIdle time.Duration
	// Set NoDeathProof where proxies or NAT sit between members: a refused connection then
	// proves nothing about the process behind it.
	NoDeathProof bool
	// VouchForNetwork switches the proof of death on that is off with Network or Peers. Set it on
	// every node only if a connection between members ends, or is refused, by the kernel of the
	// process at its other end alone: no relay, proxy or tunnel in between may do so for a process
	// that lives. Otherwise two nodes may lead. Status.DeathProof shows what holds.
	VouchForNetwork bool
	// HoldEvidence, if set, gets each connection whose end could prove to another member that
	// this process is dead, before it is used. It is for programs whose work outlives their
	// process: the work keeps the connection open. An error refuses the connection; it is tried
	// again. HoldEvidence is called from several goroutines and must return soon. A program
	// that knows that this process is dead may write the certificate to the connection, and is
	// believed: see netmesh.DeathProof. Default none.
	HoldEvidence func(conn net.Conn, certificate []byte) error `json:"-"`
	// TLS, if set, makes members prove their names to each other by certificates, and encrypts
	// their links with TLS 1.3 and their gossip with shared keys. All nodes have it or none,
	// except for Credentials.AcceptPlain. TLS returns this node's credentials. It is called at
	// the start and every ten seconds, one call at a time; see TLSDir. Default none.
	TLS func() (Credentials, error) `json:"-"`
	// Insecure permits addresses off loopback without TLS: everybody who reaches them can join,
	// vote, and end elections. Default: such addresses are refused.
	Insecure bool
	// Health says what is watched to know whether this node is fit to lead, in all elections. Start
	// waits for the first results. Default: nothing, the node is fit until Election.SetFit says
	// otherwise.
	Health health.Options `json:"-"`
	// Faults, if set, is a fault layer under the mesh, for rehearsals. Default none.
	Faults *fault.Faults
	// AdminAddr is the administration address that the other members are told. The package does
	// not listen there.
	AdminAddr string
	// Meta is what members are told about this node while it leads, such as its address for
	// clients: printable text of at most netmesh.MaxMeta bytes. Default none.
	Meta string
	// Version of the program, told to the other members. Default none.
	Version string
	// Logger gets the log lines of the node, in order, from one goroutine, which it sees as the
	// caller. A logger that blocks delays only Close: lines wait, and those beyond 1024 are lost
	// and counted. The time of a line is that of writing; "waited" says how much earlier it was
	// logged, if that is more than 100 ms. LoggerFromSlog makes a Logger of log/slog. Default:
	// nothing is logged.
	Logger hclog.Logger
}

// ElectionConfig says how a node takes part in an election. Its zero value is a
// candidate-capable voter with the timers of elector.Article. Timing, Quorum, Rule
// and what is unsafe must be the same on every node.
type ElectionConfig struct {
	Timing elector.Timing // zero: elector.Article(), or with QoS elector.ForQoS
	// QoS, if set, says how fast and how surely the crash of a leader is to be detected. It must
	// be the same on every node. Heartbeats then come as often as the links need for that, and
	// Status says how far it is met. Default none: the timers are fixed.
	QoS detector.QoS
	// Phi, if set, replaces the miss count by the phi accrual detector, with what
	// PhiConfig.WithDefaults makes of it. Nodes may differ in it. Not with QoS. Default none.
	Phi          detector.PhiConfig
	NotCandidate bool          // votes, but does not stand
	Priority     int           // ranks nodes that stand at the same moment; higher wins
	Quorum       int           // 0: a majority of the voters
	Rule         scouting.Rule // how ElectionScouting is answered
	// StopMargin is how long before the end of the lease the context of a
	// Leadership is canceled, for the work to stop; below Lease - HeartbeatBroadcast.
	// Default half of that. Unused where there is no lease.
	StopMargin time.Duration
	// AwaitCampaign keeps the node from standing before Campaign or Run is called.
	AwaitCampaign bool
	// PrepareTimeout is how long a handover waits at most until the successor's application is
	// prepared, if it needs that: see Callbacks.OnPrepare. Default 15 s; at most 24 h.
	PrepareTimeout time.Duration
	// Takeover, if not 0, lets a leader hand over to a node of higher priority. Before that, the
	// leader must have led and the other node must have been fit for this time, with whatever
	// priority. Default 0: a leader stays (sticky).
	Takeover         time.Duration
	UnsafeQuorum     bool // permits a quorum of half the voters or less
	UnsafeNoScouting bool // the article's algorithm before its extension; no lease
}

// withDefaults returns c with every default filled in.
func (c Config) withDefaults() Config {
	c.Cluster = cmp.Or(c.Cluster, DefaultCluster)
	c.GossipAddr = cmp.Or(c.GossipAddr, defaultGossipAddr)
	c.MeshAddr = cmp.Or(c.MeshAddr, defaultMeshAddr)
	c.Election = c.Election.withDefaults()
	c.PrefixLimit = cmp.Or(c.PrefixLimit, 100_000)
	c.PrefixIdle = cmp.Or(c.PrefixIdle, 10*time.Minute)
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// majority is the value of a quorum in Agreed that follows from the voters: a difference of the
// lists of voters must not show as a difference of quorums, too.
const majority = "a majority"

// Agreed returns the settings of the default election that must be equal on every node, by the
// names of their options, with defaults filled in. Members send each other these settings. The
// voters and the cluster's name are compared apart from them. The caller may change the map.
func (c Config) Agreed() map[string]string {
	c = c.withDefaults()
	e, t := c.Election, c.Election.Timing
	quorum := majority
	if size := c.elector(e).QuorumSize(); size != elector.Majority(len(c.Voters)) {
		quorum = strconv.Itoa(size)
	}
	return map[string]string{
		"heartbeat-broadcast":  t.HeartbeatBroadcast.String(),
		"heartbeat-miss-count": strconv.Itoa(t.HeartbeatMissCount),
		"lease":                t.Lease.String(),
		"clock-drift-ppm":      strconv.FormatInt(t.ClockDriftPPM, 10),
		"quorum-rule":          quorum, // older processes tell "quorum", always as a number
		"qos":                  e.QoS.String(),
		"scouting-rule":        e.Rule.String(),
		"unsafe-no-scouting":   strconv.FormatBool(e.UnsafeNoScouting),
		"no-death-proof":       strconv.FormatBool(c.noDeathProof() != ""),
	}
}

// noDeathProof is why no death of a member is proven; "" if it is.
func (c Config) noDeathProof() string {
	switch {
	case c.NoDeathProof:
		return "off: NoDeathProof is set"
	case c.VouchForNetwork:
		return ""
	case c.Network != nil:
		return "off: nobody vouches for the network, which is the program's own"
	case c.Peers != nil:
		return "off: nobody vouches for the addresses of the members, which are given"
	}
	return ""
}

// Role says in a few words what the node is to its cluster: a candidate, a voter, or an
// observer, and then why.
func (c Config) Role() string {
	switch {
	case len(c.Voters) == 0:
		return "observer, until it is made a voter: it has no voters configured"
	case !slices.Contains(c.Voters, c.Node):
		return fmt.Sprintf("observer: %s is not among the voters %s", c.Node, words.List(c.Voters))
	case c.Election.NotCandidate:
		return "voter, not a candidate"
	}
	return "voter and candidate"
}

func (e ElectionConfig) withDefaults() ElectionConfig {
	if e.Timing == (elector.Timing{}) && e.QoS != (detector.QoS{}) {
		e.Timing = elector.ForQoS(e.QoS)
	}
	e.Timing = cmp.Or(e.Timing, elector.Article())
	e.Phi = e.Phi.WithDefaults(e.Timing.HeartbeatBroadcast, e.Timing.Promise())
	e.PrepareTimeout = cmp.Or(e.PrepareTimeout, 15*time.Second)
	e.StopMargin = cmp.Or(e.StopMargin, (e.Timing.Lease-e.Timing.HeartbeatBroadcast)/2)
	return e
}

// elector is the machine's view of the configuration, for one election.
func (c Config) elector(e ElectionConfig) elector.Config {
	return elector.Config{
		Self: c.Node, Voters: c.Voters,
		NotCandidate: e.NotCandidate, Priority: e.Priority, Quorum: e.Quorum, Rule: e.Rule,
		Timing: e.Timing, QoS: e.QoS, Phi: e.Phi, Takeover: e.Takeover,
		Prepare:      e.PrepareTimeout,
		UnsafeQuorum: e.UnsafeQuorum, UnsafeNoScouting: e.UnsafeNoScouting,
	}
}

// setup is how the node takes part in an election.
func (c Config) setup(e ElectionConfig) loop.Setup {
	return loop.Setup{
		Elector: c.elector(e), AwaitCampaign: e.AwaitCampaign, StopMargin: e.StopMargin,
	}
}

// ConfigError names every rule that a Config violates, not only the first.
type ConfigError struct{ Problems []elector.Problem }

// Error joins the problems.
func (e *ConfigError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return "cluster config: " + strings.Join(parts, "; ")
}

// Validate returns a *ConfigError that names everything that is wrong, or nil. It
// changes nothing and touches neither disk nor network.
func (c Config) Validate() error {
	c = c.withDefaults()
	var ps problems
	c.checkElection(c.Election, "Election.", &ps)
	c.checkPrefixes(&ps)
	if len(c.Voters) == 0 && len(c.Join) == 0 && len(c.Peers) == 0 {
		ps.add("Voters", "empty",
			"at least one node name, or empty beside Join: the node learns the voters then")
	}
	if c.Peers != nil && len(c.Join) > 0 {
		ps.add("Join", words.List(c.Join), "empty beside Peers, with which there is no gossip")
	}
	if c.Network != nil && c.Peers == nil {
		ps.add("Peers", "not set", "set beside Network, which gossip does not use; empty, not nil, on a "+
			"node that others dial")
	}
	if netmesh.NameProblem(c.Cluster) != "" {
		ps.add("Cluster", strconv.Quote(c.Cluster), "1 to %d bytes without spaces", netmesh.MaxNameLength)
	}
	if !netmesh.MetaFits(c.Meta) {
		ps.add("Meta", fmt.Sprintf("%.80q", c.Meta), "printable text of at most %d bytes, in UTF-8",
			netmesh.MaxMeta)
	}
	if c.DataDir == "" {
		ps.add("DataDir", "empty", "a directory for the durable state")
	}
	if c.MinTerm >= lsn.MaxTerm {
		ps.add("MinTerm", c.MinTerm.String(), "below %d, the highest term", lsn.MaxTerm)
	}
	c.checkAddresses(&ps)
	c.checkExposed(&ps)
	checkHealth(c.Health, &ps)
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b elector.Problem) int { return cmp.Compare(a.Field, b.Field) })
	return &ConfigError{ps}
}

// problems are what Validate has found.
type problems []elector.Problem

func (ps *problems) add(field, value, format string, args ...any) {
	*ps = append(*ps, elector.Problem{Field: field, Value: value, Want: fmt.Sprintf(format, args...)})
}

// checkElection checks how the node takes part in an election. The names of its fields begin with
// field.
func (c Config) checkElection(e ElectionConfig, field string, ps *problems) {
	var bad *elector.ConfigError
	if errors.As(c.elector(e).Validate(), &bad) { // in the names of this configuration
		for _, p := range bad.Problems {
			switch p.Field {
			case "Voters":
			case "Self":
				p.Field = "Node"
			default:
				p.Field = field + p.Field
			}
			*ps = append(*ps, p)
		}
	}
	// Right before a heartbeat renews the lease no more than most is left of it: a leader
	// must have time for work then. If most is not positive, the timers have said so.
	margin, most := e.StopMargin, e.Timing.Lease-e.Timing.HeartbeatBroadcast
	if most > 0 && (margin <= 0 || margin >= most) {
		ps.add(field+"StopMargin", margin.String(),
			"positive and shorter than Lease - HeartbeatBroadcast, %s", most)
	}
}

func checkHealth(h health.Options, ps *problems) {
	negative := func(field string, value int64, text string) {
		if value < 0 {
			ps.add("Health."+field, text, "0 for the default, or more")
		}
	}
	negative("Period", int64(h.Period), h.Period.String())
	negative("Timeout", int64(h.Timeout), h.Timeout.String())
	negative("Failures", int64(h.Failures), strconv.Itoa(h.Failures))
	negative("Successes", int64(h.Successes), strconv.Itoa(h.Successes))
	names := map[string]bool{}
	for i, p := range h.Probes {
		field := fmt.Sprintf("Probes[%d].", i)
		negative(field+"Timeout", int64(p.Timeout), p.Timeout.String())
		negative(field+"Failures", int64(p.Failures), strconv.Itoa(p.Failures))
		if netmesh.NameProblem(p.Name) != "" || len(p.Name) > health.MaxName || names[p.Name] {
			ps.add("Health."+field+"Name", strconv.Quote(p.Name),
				"1 to %d bytes without spaces, and no other probe's", health.MaxName)
		}
		if p.Check == nil {
			ps.add("Health."+field+"Check", "nil", "a function")
		}
		names[p.Name] = true
	}
}

func (c Config) checkAddresses(ps *problems) {
	check := func(field, addr string) {
		host, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil || host == "" {
			listen := ""
			if field == "GossipAddr" || field == "MeshAddr" {
				listen = ", or 0.0.0.0:7400 for every interface"
			}
			ps.add(field, strconv.Quote(addr), "host:port with a port from 0 to 65535, "+
				"such as 192.0.2.1:7400 or [2001:db8::1]:7400%s", listen)
		}
	}
	gossip, mesh := cmp.Or(c.AdvertiseGossip, c.GossipAddr), cmp.Or(c.AdvertiseMesh, c.MeshAddr)
	check("GossipAddr", c.GossipAddr)
	check("MeshAddr", c.MeshAddr)
	if c.AdvertiseGossip != "" {
		check("AdvertiseGossip", gossip)
	}
	if c.AdvertiseMesh != "" {
		check("AdvertiseMesh", mesh)
	}
	if c.GossipAddr == c.MeshAddr && !strings.HasSuffix(c.MeshAddr, ":0") {
		ps.add("MeshAddr", c.MeshAddr, "another address than GossipAddr, which takes TCP and UDP of its "+
			"port: give each a port of its own")
	}
	remote := "" // a join address on another machine
	for i, addr := range c.Join {
		check(fmt.Sprintf("Join[%d]", i), addr)
		if ip := ipOf(addr); remote == "" && ip != nil && !ip.IsLoopback() {
			remote = addr
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Peers)) {
		check(fmt.Sprintf("Peers[%s]", id), c.Peers[id])
		if why := elector.NameProblem(id); why != "" {
			ps.add("Peers", strconv.Quote(string(id)), "names of nodes: this one is %s", why)
		}
	}
	for field, addr := range map[string]string{"GossipAddr": gossip, "MeshAddr": mesh} {
		if remote != "" && ipOf(addr).IsLoopback() {
			ps.add(field, addr, "an address that other machines reach, since %s is to be joined", remote)
		}
	}
}

// checkExposed demands TLS where strangers may reach this node.
func (c Config) checkExposed(ps *problems) {
	if c.TLS != nil || c.Insecure {
		return
	}
	var exposed []string
	addrs := []struct{ field, addr string }{
		{"GossipAddr", c.GossipAddr}, {"MeshAddr", c.MeshAddr},
		{"AdvertiseGossip", c.AdvertiseGossip}, {"AdvertiseMesh", c.AdvertiseMesh},
	}
	if c.Peers != nil { // there is no gossip
		addrs = []struct{ field, addr string }{addrs[1], addrs[3]}
	}
	for _, a := range addrs {
		if _, _, err := net.SplitHostPort(a.addr); err == nil && !limit.IsLoopback(a.addr) {
			exposed = append(exposed, a.field+" "+a.addr)
		}
	}
	if len(exposed) > 0 {
		ps.add("TLS", "not set", "set, since other machines may reach %s: make certificates with "+
			"'bmqnode certs --dir DIR NODE...'; or set Insecure, and let only members reach them",
			strings.Join(exposed, ", "))
	}
}

// ipOf is the IP address in host:port; nil if the host is a name.
func ipOf(addr string) net.IP {
	host, _, _ := net.SplitHostPort(addr)
	return net.ParseIP(host)
}
