package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/scouting"
)

// defaultAdminAddr is where a node's HTTP side listens unless told otherwise.
const defaultAdminAddr = "127.0.0.1:7402"

// defaultAsk is where commands look for a node: the default, which is also the
// first node of a local mesh, and its next two, in case the first one is down.
var defaultAsk = []string{defaultAdminAddr, "127.0.0.1:7405", "127.0.0.1:7408"}

// options are the flags of `run`, which are also the keys of its file.
type options struct {
	config  cluster.Config
	voters  []string
	node    string
	profile string
	rule    string
	timing  elector.Timing // what the flags say; the profile fills the rest
	flags   *pflag.FlagSet

	admin               adminOptions
	faults              bool
	logLevel, logFormat string
	logFile             string // "" is stderr
	shutdown            time.Duration
	hooks               hookOptions
}

func (o *options) register(f *pflag.FlagSet) {
	o.flags = f
	c := &o.config
	f.StringVar(&o.node, "node", "", "name of this node, unique in the cluster (required)")
	f.StringSliceVar(&o.voters, "voters", nil, "names of the nodes that elect, the same on every node (required)")
	f.StringVar(&c.DataDir, "data-dir", "", "directory of the durable state, made if absent (required)")
	f.StringSliceVar(&c.Join, "join", nil, "gossip addresses, host:port, of any members to join; tried for ever")
	f.StringVar(&c.Cluster, "cluster", cluster.DefaultCluster, "name of the cluster; clusters never mix")
	f.StringVar(&c.GossipAddr, "gossip-addr", cluster.DefaultGossipAddr, "host:port to listen on for membership, TCP and UDP")
	f.StringVar(&c.MeshAddr, "mesh-addr", cluster.DefaultMeshAddr, "host:port to listen on for the election, TCP")
	f.StringVar(&c.AdvertiseGossip, "advertise-gossip", "", "host:port that others are told, if not --gossip-addr")
	f.StringVar(&c.AdvertiseMesh, "advertise-mesh", "", "host:port that others are told, if not --mesh-addr")
	o.admin.register(f)
	f.BoolVar(&c.NoDeathProof, "no-death-proof", false, "set where proxies or NAT sit between members: a refused connection proves nothing there")
	f.BoolVar(&o.faults, "faults", false, "allow links to be cut on purpose, by 'bmqnode fault'")
	f.StringVar(&o.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "human", "human or json")
	f.StringVar(&o.logFile, "log-file", "", "file to which the log is appended (default: stderr)")
	f.DurationVar(&o.shutdown, "shutdown-timeout", 10*time.Second, "most time for the hand-over at SIGTERM; the process ends 2s later at the latest")
	o.hooks.register(f)
	o.registerElection(f)
}

func (o *options) registerElection(f *pflag.FlagSet) {
	e, t, p := &o.config.Election, &o.timing, elector.Article()
	f.BoolVar(&e.NotCandidate, "not-candidate", false, "vote, but never stand for election")
	f.IntVar(&e.Priority, "priority", 0, "ranks nodes that stand at the same moment, higher wins; unseats a leader only with --takeover")
	f.IntVar(&e.Quorum, "quorum", 0, "voters needed to elect (0: a majority)")
	f.StringVar(&o.rule, "scouting-rule", scouting.RuleDefault.String(), "how scouting is answered: default, or node-order as the article has it")
	f.DurationVar(&e.StopMargin, "stop-margin", 0, "how long before the end of its lease a leader's work is told to stop (0: half of what the lease has beyond a heartbeat)")
	f.DurationVar(&e.Takeover, "takeover", 0, "let a leader hand over to a node of higher priority that was fit for so long (0: never)")
	f.BoolVar(&e.UnsafeQuorum, "unsafe-quorum", false, "permit a quorum of half the voters or less: two leaders become possible")
	f.BoolVar(&e.UnsafeNoScouting, "unsafe-no-scouting", false, "the algorithm before its scouting extension, to see what goes wrong")
	f.StringVar(&o.profile, "profile", "article", "set of timers: "+strings.Join(elector.ProfileNames(), " or ")+"; the flags below override it")
	f.DurationVar(&t.InitialWait, "initial-wait", p.InitialWait, "after start: time to discover an existing leader first")
	f.DurationVar(&t.MaxRandomWait, "max-random-wait", p.MaxRandomWait, "longest back-off before a node stands")
	f.DurationVar(&t.ScoutingResult, "scouting-result", p.ScoutingResult, "a scouting round without a quorum by then has failed")
	f.DurationVar(&t.ElectionResult, "election-result", p.ElectionResult, "likewise a proposal")
	f.DurationVar(&t.HeartbeatBroadcast, "heartbeat-broadcast", p.HeartbeatBroadcast, "period of the leader's heartbeats")
	f.IntVar(&t.HeartbeatMissCount, "heartbeat-miss-count", p.HeartbeatMissCount, "periods of silence after which a leader is inactive")
	f.DurationVar(&t.Lease, "lease", p.Lease, "how long a quorum's acks keep a leader")
	f.Int64Var(&t.ClockDriftPPM, "clock-drift-ppm", p.ClockDriftPPM, "most by which two nodes' clock rates differ, parts per million")
}

// resolve returns the node's configuration, or every mistake in the options.
func (o *options) resolve() (cluster.Config, error) {
	c := o.config
	c.Node, c.Version = cluster.NodeID(o.node), version()
	c.Voters = nil
	for _, v := range o.voters {
		c.Voters = append(c.Voters, cluster.NodeID(v))
	}
	if o.faults {
		c.Faults = netmesh.NewFaults()
	}
	_, errLog := o.checkLogLevel()
	_, errAdmin := o.admin.check()
	errs := []error{o.resolveTiming(&c.Election), o.resolveRule(&c.Election), o.hooks.check(), errLog, errAdmin}
	if o.logFormat != "human" && o.logFormat != "json" {
		errs = append(errs, fmt.Errorf("--log-format is %q, but must be human or json", o.logFormat))
	}
	return c, errors.Join(append(errs, inFlags(c.Validate()))...)
}

// inFlags names the problems of a configuration by the flags behind it.
func inFlags(err error) error {
	var bad *cluster.ConfigError
	if !errors.As(err, &bad) {
		return err
	}
	var errs []error
	for _, p := range bad.Problems {
		p.Field, p.Want = flagOf(p.Field), fieldsInText.Replace(p.Want)
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

// fieldsInText turns the fields that a problem mentions into flags.
var fieldsInText = func() *strings.Replacer {
	var pairs []string
	for _, field := range []string{"HeartbeatBroadcast", "HeartbeatMissCount", "MaxRandomWait", "UnsafeQuorum", "Lease"} {
		pairs = append(pairs, field, flagOf(field))
	}
	return strings.NewReplacer(pairs...)
}()

// flagOf is the flag that sets a field: its name's words with dashes, as in
// Election.Timing.MaxRandomWait and --max-random-wait.
func flagOf(field string) string {
	field = field[strings.LastIndex(field, ".")+1:]
	switch field {
	case "ClockDriftPPM":
		return "--clock-drift-ppm"
	case "Rule":
		return "--scouting-rule"
	}
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return "--" + b.String()
}

// resolveTiming takes the profile, and from the flags what was given.
func (o *options) resolveTiming(e *cluster.ElectionConfig) error {
	t, ok := elector.Profile(o.profile)
	if !ok {
		return fmt.Errorf("--profile is %q, but must be one of %s", o.profile, strings.Join(elector.ProfileNames(), ", "))
	}
	for flag, set := range map[string]func(){
		"initial-wait":         func() { t.InitialWait = o.timing.InitialWait },
		"max-random-wait":      func() { t.MaxRandomWait = o.timing.MaxRandomWait },
		"scouting-result":      func() { t.ScoutingResult = o.timing.ScoutingResult },
		"election-result":      func() { t.ElectionResult = o.timing.ElectionResult },
		"heartbeat-broadcast":  func() { t.HeartbeatBroadcast = o.timing.HeartbeatBroadcast },
		"heartbeat-miss-count": func() { t.HeartbeatMissCount = o.timing.HeartbeatMissCount },
		"lease":                func() { t.Lease = o.timing.Lease },
		"clock-drift-ppm":      func() { t.ClockDriftPPM = o.timing.ClockDriftPPM },
	} {
		if o.flags.Changed(flag) {
			set()
		}
	}
	e.Timing = t
	return nil
}

func (o *options) resolveRule(e *cluster.ElectionConfig) error {
	for _, r := range []scouting.Rule{scouting.RuleDefault, scouting.RuleNodeOrder} {
		if o.rule == r.String() {
			e.Rule = r
			return nil
		}
	}
	return fmt.Errorf("--scouting-rule is %q, but must be default or node-order", o.rule)
}
