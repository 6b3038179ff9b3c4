// Package config holds the options of a node, from flags or from a YAML file whose keys are the
// names of the flags, and makes a cluster.Config of them.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
	"github.com/bmqelect/bmqelect/scouting"
)

// DefaultAdminAddr is the address of a node's admin side by default.
const DefaultAdminAddr = "127.0.0.1:7402"

// The flags for the file of tokens and for the directory of the certificate, of nodes and of the
// commands that ask them.
const (
	TokenFlag = "admin-token-file"
	TLSFlag   = "tls-dir"
)

const defaultProfile = "article"

// UsageError is a mistake in what the user typed or configured. Nothing was done.
type UsageError struct{ error }

// Usage makes err a UsageError, unless it is nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

// Mistakes are what is wrong with options.
type Mistakes []error

// Want adds a mistake unless the condition holds.
func (m *Mistakes) Want(well bool, format string, args ...any) {
	if !well {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

// Err is a UsageError of all mistakes, or nil.
func (m Mistakes) Err() error { return Usage(errors.Join(m...)) }

// Options are the options of a node. Register fills them in, as the flags are parsed.
type Options struct {
	Node     string
	Voters   []string
	Cluster  cluster.Config // without what Resolve fills in
	TLSDir   string
	Shutdown time.Duration
	Admin    Admin
	Hooks    Hooks
	Health   Health
	Groups   []string // further elections to take part in
	// Supervised is not for 'exec', RealTime is.
	Supervised, RealTime bool

	profile, rule                string
	rehearsal                    bool
	logLevel, logFormat, logFile string
	timing                       *pflag.FlagSet // the flags that override the profile
	prefixes                     []string
}

// Hooks are the shell commands that run at a change of the leader, and before this node leads.
type Hooks struct {
	OnLeader, OnFollower, OnPrepare string
	Timeout                         time.Duration // of the first two
}

// Health are the probes that say whether the node is fit to lead. What they have in common is in
// Cluster.Health.
type Health struct {
	Command, URL string // "": none
	Disk         bool
	DiskTimeout  time.Duration
}

// Register adds the flags of a node.
func (o *Options) Register(f *pflag.FlagSet) {
	c := &o.Cluster
	f.StringVar(&o.Node, "node", "", "name of this node, unique in the cluster (required)")
	f.StringSliceVar(&o.Voters, "voters", nil,
		"names of the nodes that elect, the same on every node; a node that joins others by --join "+
			"needs none: 'bmqnode voters add' makes it a voter (otherwise required)")
	f.StringVar(&c.DataDir, "data-dir", "",
		"directory of the durable state, made if absent (required)")
	f.Uint64Var((*uint64)(&c.MinTerm), "min-term", 0, "lowest term of this node: for a cluster "+
		"that has lost all data directories, above what any fence has seen")
	f.StringSliceVar(&c.Join, "join", nil,
		"gossip addresses, host:port, of any members to join; retried forever")
	f.StringVar(&c.Cluster, "cluster", cluster.DefaultCluster,
		"name of the cluster; clusters never mix")
	f.StringVar(&c.GossipAddr, "gossip-addr", "127.0.0.1:7400",
		"host:port to listen on for membership, TCP and UDP")
	f.StringVar(&c.MeshAddr, "mesh-addr", "127.0.0.1:7401",
		"host:port to listen on for the election, TCP")
	f.StringVar(&c.AdvertiseGossip, "advertise-gossip", "",
		"host:port that others are told, if not --gossip-addr")
	f.StringVar(&c.AdvertiseMesh, "advertise-mesh", "",
		"host:port that others are told, if not --mesh-addr")
	f.StringVar(&o.TLSDir, TLSFlag, "", "directory of ca.crt, tls.crt, tls.key and gossip.key: "+
		"encrypt the election, with members alone, and HTTP; see 'bmqnode certs'")
	f.BoolVar(&c.Insecure, "insecure", false, "listen off loopback without --tls-dir: whoever "+
		"reaches an address can join, vote, and end elections")
	f.StringVar(&o.Admin.Addr, "admin-addr", DefaultAdminAddr,
		`host:port or unix:PATH of the HTTP side ("": none)`)
	f.StringVar(&o.Admin.Advertise, "advertise-admin", "",
		"host:port that others are told, if not --admin-addr")
	f.StringVar(&c.Meta, "meta", "", "text of at most 512 bytes that others are told of this "+
		"node when it leads, such as its address for clients")
	f.StringVar(&o.Admin.Socket, "admin-socket", "",
		"path of a Unix socket for the HTTP side, beside --admin-addr")
	f.StringVar(&o.Admin.socketMode, "admin-socket-mode", "0600", "permissions of that socket")
	f.StringVar(&o.Admin.TokenFile, TokenFlag, "",
		"file of tokens, a line each: 'read TOKEN' or 'operate TOKEN'; without a certificate, "+
			"requests need one over a network, and everywhere if they change something")
	f.BoolVar(&o.Admin.TokenReads, "admin-token-reads", false,
		"demand a token of requests that only read, everywhere")
	f.StringSliceVar(&o.Admin.Open, "admin-open", nil, "what over a network needs neither "+
		"certificate nor token: "+strings.Join(admin.Openable, ", "))
	f.BoolVar(&c.NoDeathProof, "no-death-proof", false, "set this where proxies or NAT sit "+
		"between members: a refused connection proves nothing there")
	f.BoolVar(&o.rehearsal, "rehearsal", false,
		"allow links to be cut on purpose, by 'bmqnode fault'")
	f.StringVar(&o.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "human", "human or json")
	f.StringVar(&o.logFile, "log-file", "",
		"file to which the log is appended (default: stderr)")
	f.DurationVar(&o.Shutdown, "shutdown-timeout", 10*time.Second, "longest time for the "+
		"handover at SIGTERM; the process ends 2s later at the latest")
	o.registerProcess(f)
	o.registerHealth(f)
	o.registerElection(f)
}

// registerHealth adds the flags of the probes.
func (o *Options) registerHealth(f *pflag.FlagSet) {
	h := &o.Cluster.Health
	f.StringVar(&o.Health.Command, "health-command", "", "shell command that says whether this "+
		"node is fit to lead: exit status 0, otherwise the last line of its output says why not")
	f.StringVar(&o.Health.URL, "health-url", "",
		"URL that says so when asked with GET: status 2xx, otherwise status and first line of the body")
	f.BoolVar(&o.Health.Disk, "health-disk", true,
		"unfit if a small file in --data-dir cannot be written and synced")
	f.DurationVar(&o.Health.DiskTimeout, "health-disk-timeout", health.DiskTimeout,
		"longest time for that; one failure is enough")
	f.DurationVar(&h.Period, "health-period", health.DefaultPeriod, "time between two checks")
	f.DurationVar(&h.Timeout, "health-timeout", health.DefaultTimeout,
		"longest time for the command and for the answer of the URL")
	f.IntVar(&h.Failures, "health-failures", health.DefaultFailures,
		"failures in a row after which the node is unfit")
	f.IntVar(&h.Successes, "health-successes", health.DefaultSuccesses,
		"successes in a row after which it is fit again")
}

// registerProcess adds the flags of the process and of what runs beside it.
func (o *Options) registerProcess(f *pflag.FlagSet) {
	f.StringVar(&o.Hooks.OnLeader, "on-leader", "", "shell command to run when this node has "+
		"become leader; a notification, not guarded work")
	f.StringVar(&o.Hooks.OnFollower, "on-follower", "",
		"shell command to run when another node leads, or none any more")
	f.DurationVar(&o.Hooks.Timeout, "hook-timeout", 10*time.Second,
		"time after which such a command is killed")
	f.StringVar(&o.Hooks.OnPrepare, "on-prepare", "", "shell command that prepares the application "+
		"when the leader names this node as its successor; killed when it names another")
	f.BoolVar(&o.Supervised, "supervised", false, "run the node as a child, and tell the other "+
		"members at once if it dies; signals and exit status are passed on; without effect on "+
		"'exec': a node that dies there may leave its command for a while")
	f.BoolVar(&o.RealTime, "realtime", false, "run before all ordinary processes, hooks included "+
		"but not the command of 'exec': Linux's SCHED_RR, where it is permitted")
	f.StringSliceVar(&o.Groups, "groups", nil,
		"further elections to take part in, by name, the same on every node")
	f.StringSliceVar(&o.prefixes, "prefixes", nil, "prefixes of names of elections that open when one "+
		"is needed, the same on every node")
	f.IntVar(&o.Cluster.PrefixLimit, "prefix-limit", 100_000,
		"most elections that are open because another voter asked for them")
	f.DurationVar(&o.Cluster.PrefixIdle, "prefix-idle", 10*time.Minute,
		"time after which such an election closes here if nobody leads or needs it")
}

func (o *Options) registerElection(f *pflag.FlagSet) {
	e := &o.Cluster.Election
	f.BoolVar(&e.NotCandidate, "not-candidate", false, "vote, but never stand for election")
	f.IntVar(&e.Priority, "priority", 0, "ranks nodes that stand at the same moment, higher "+
		"wins; unseats a leader only with --takeover")
	f.IntVar(&e.Quorum, "quorum", 0, "voters needed to elect (0: a majority)")
	f.StringVar(&o.rule, "scouting-rule", scouting.RuleDefault.String(),
		"how scouting is answered: default, or node-order as the article has it")
	f.DurationVar(&e.StopMargin, "stop-margin", 0, "how long before the end of its lease a "+
		"leader's work is told to stop (0: half of what the lease has beyond a heartbeat)")
	f.DurationVar(&e.PrepareTimeout, "prepare-timeout", 0, "how long a handover waits at most for "+
		"a successor that is not prepared (0: four fifths of --shutdown-timeout)")
	f.DurationVar(&e.Takeover, "takeover", 0, "let a leader hand over to a node of higher "+
		"priority that was fit for so long (0: never)")
	f.BoolVar(&e.UnsafeQuorum, "unsafe-quorum", false,
		"permit a quorum of half the voters or less: two leaders become possible")
	f.BoolVar(&e.UnsafeNoScouting, "unsafe-no-scouting", false,
		"the algorithm before its scouting extension, to see what goes wrong")
	f.TextVar(&e.QoS, "qos", e.QoS, "how fast and surely the crash of a leader is detected, "+
		"`fields` such as '"+detector.ExampleQoS+"'; timers follow from it (default: from the profile)")
	f.TextVar(&e.Phi, "phi", e.Phi, "suspect a leader by the phi accrual detector, with some of the "+
		"`fields` '"+detector.ExamplePhi+"' (default: by --heartbeat-miss-count)")
	f.StringVar(&o.profile, "profile", defaultProfile, "set of timers: "+
		strings.Join(elector.ProfileNames(), ", ")+"; the flags below override it")

	t, p := &e.Timing, elector.Article()
	timing := pflag.NewFlagSet("timing", pflag.ContinueOnError)
	timing.SortFlags = false
	timing.DurationVar(&t.InitialWait, "initial-wait", p.InitialWait,
		"after start: time to discover an existing leader first")
	timing.DurationVar(&t.MinRandomWait, "min-random-wait", p.MinRandomWait,
		"nodes stand in turn, so long or two round trips apart (0: at random)")
	timing.DurationVar(&t.MaxRandomWait, "max-random-wait", p.MaxRandomWait,
		"longest back-off before a node stands")
	timing.DurationVar(&t.ScoutingResult, "scouting-result", p.ScoutingResult,
		"time after which a scouting round without a quorum has failed")
	timing.DurationVar(&t.ElectionResult, "election-result", p.ElectionResult,
		"the same for a proposal")
	timing.DurationVar(&t.HeartbeatBroadcast, "heartbeat-broadcast", p.HeartbeatBroadcast,
		"period of the leader's heartbeats")
	timing.IntVar(&t.HeartbeatMissCount, "heartbeat-miss-count", p.HeartbeatMissCount,
		"periods of silence after which a leader is inactive")
	timing.DurationVar(&t.Lease, "lease", p.Lease, "how long a quorum's acks keep a leader")
	timing.Int64Var(&t.ClockDriftPPM, "clock-drift-ppm", p.ClockDriftPPM,
		"most by which two nodes' clock rates differ, parts per million")
	f.AddFlagSet(timing)
	o.timing = timing
}

// Resolve returns the node's configuration, or every mistake in the options, as a
// UsageError.
func (o *Options) Resolve() (cluster.Config, error) {
	c := o.Cluster
	c.Node, c.Voters = cluster.NodeID(o.Node), NodeIDs(o.Voters)
	c.Cluster = cmp.Or(c.Cluster, cluster.DefaultCluster) // as certificates and commands call it
	if o.TLSDir != "" {
		c.TLS = cluster.TLSDir(o.TLSDir)
	}
	if o.rehearsal {
		c.Faults = fault.New()
	}
	var wrong Mistakes
	wrong = append(wrong, o.resolveTiming(&c.Election.Timing))
	if o.rule == scouting.RuleNodeOrder.String() {
		c.Election.Rule = scouting.RuleNodeOrder
	}
	wrong.Want(o.rule == c.Election.Rule.String(),
		"--scouting-rule is %q, but must be default or node-order", o.rule)
	wrong.Want(o.Hooks.Timeout > 0, "--hook-timeout is %s, but must be positive", o.Hooks.Timeout)
	wrong.Want(c.Election.PrepareTimeout >= 0 && c.Election.PrepareTimeout < max(o.Shutdown, 1),
		"--prepare-timeout is %s, but must be 0 or positive, and below --shutdown-timeout, %s",
		c.Election.PrepareTimeout, o.Shutdown)
	c.Election.PrepareTimeout = cmp.Or(c.Election.PrepareTimeout, o.Shutdown*4/5)
	c.Prefixes = map[string]cluster.ElectionConfig{}
	for _, prefix := range o.prefixes {
		c.Prefixes[prefix] = c.Election
	}
	seen := make(map[string]bool, len(o.Groups)) // there may be very many
	for _, group := range o.Groups {
		problem := netmesh.NameProblem(group)
		wrong.Want(problem == "", "--groups has %.300q, but a name must not be %s", group, problem)
		wrong.Want(!seen[group], "--groups has %.300q twice", group)
		seen[group] = true
	}
	wrong.Want(o.logFormat == "human" || o.logFormat == "json",
		"--log-format is %q, but must be human or json", o.logFormat)
	wrong.Want(hclog.LevelFromString(o.logLevel) != hclog.NoLevel,
		"--log-level is %q, but must be trace, debug, info, warn or error", o.logLevel)
	o.Health.validate(&wrong)
	o.Admin.validate(&wrong, c.TLS == nil && !c.Insecure)
	for _, other := range [][2]string{{"gossip", c.GossipAddr}, {"mesh", c.MeshAddr}} {
		a := o.Admin.Addr
		wrong.Want(a == "" || a != other[1] || strings.HasSuffix(a, ":0"), "--admin-addr is %s, but "+
			"must be another address than --%s-addr: give each a port of its own", a, other[0])
	}
	return c, append(wrong, inFlags(c.Validate())).Err()
}

// validate adds the mistakes that Config.Validate does not know.
func (h *Health) validate(wrong *Mistakes) {
	wrong.Want(h.DiskTimeout >= 0,
		"--health-disk-timeout is %s, but must be 0 for the default, or more", h.DiskTimeout)
	u, err := url.Parse(h.URL)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	wrong.Want(h.URL == "" || web,
		"--health-url is %q, but must be http://HOST... or https://HOST...", h.URL)
}

func NodeIDs(names []string) (ids []cluster.NodeID) {
	for _, name := range names {
		ids = append(ids, cluster.NodeID(name))
	}
	return ids
}

// resolveTiming takes the timers of the profile, except those that were given.
func (o *Options) resolveTiming(t *elector.Timing) error {
	profile, ok := elector.Profile(o.profile)
	if !ok {
		return fmt.Errorf("--profile is %q, but must be one of %s",
			o.profile, strings.Join(elector.ProfileNames(), ", "))
	}
	if ask := o.Cluster.Election.QoS; ask != (detector.QoS{}) {
		if o.profile != defaultProfile {
			return fmt.Errorf("--profile is %q, but must be left out: --qos has its own timers", o.profile)
		}
		profile = elector.ForQoS(ask)
	}
	given := map[string]string{}
	o.timing.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			given[f.Name] = f.Value.String()
		}
	})
	o.Cluster.Election.Timing = profile
	for name, text := range given {
		if err := o.timing.Set(name, text); err != nil {
			return err
		}
	}
	*t = o.Cluster.Election.Timing
	return nil
}

// inFlags replaces the fields in the problems of a configuration by flags.
func inFlags(err error) error {
	var bad *cluster.ConfigError
	if !errors.As(err, &bad) {
		return err
	}
	var fields []string // and their flags, as old and new text
	for _, field := range []string{
		"HeartbeatBroadcast", "HeartbeatMissCount", "MinRandomWait", "MaxRandomWait",
		"UnsafeQuorum", "Lease", "AdvertiseGossip", "AdvertiseMesh", "GossipAddr", "MeshAddr", "Insecure",
		"QoS.Detect", "QoS", "Join",
	} {
		fields = append(fields, field, flagOf(field))
	}
	var errs []error
	for _, p := range bad.Problems {
		if strings.HasPrefix(p.Field, "Prefixes[") && !strings.HasSuffix(p.Field, "]") {
			continue // it is said of Election, which each prefix has
		}
		p.Field, p.Want = flagOf(p.Field), strings.NewReplacer(fields...).Replace(p.Want)
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

// flagOf is the flag of a field: Election.Timing.MaxRandomWait has --max-random-wait.
func flagOf(field string) string {
	if strings.HasPrefix(field, "Prefixes[") {
		return "--prefixes"
	}
	field = strings.TrimPrefix(field, "Election.")
	switch name, part, _ := strings.Cut(field, "."); name {
	case "QoS", "Phi": // a flag that sets several fields
		return strings.TrimSpace("--" + strings.ToLower(name+" "+part))
	case "Health":
		return "--health-" + strings.ToLower(part)
	}
	field = field[strings.LastIndex(field, ".")+1:]
	switch field {
	case "ClockDriftPPM":
		return "--clock-drift-ppm"
	case "Rule":
		return "--scouting-rule"
	case "TLS":
		return "--" + TLSFlag
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

// NewLogger opens the log. The error is a UsageError.
func (o *Options) NewLogger() (hclog.Logger, error) {
	out := os.Stderr
	if o.logFile != "" {
		// The file may be a FIFO that nobody reads: opening it must not block.
		flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY | syscall.O_NONBLOCK
		var err error
		if out, err = os.OpenFile(o.logFile, flags, 0o600); err != nil {
			return nil, UsageError{fmt.Errorf("--log-file: %w", err)}
		}
	}
	level := hclog.LevelFromString(o.logLevel)
	if o.logFormat == "json" {
		return jsonLogger(out, level), nil
	}
	options := &hclog.LoggerOptions{Level: level, Output: out}
	if term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == "" {
		options.Color, options.ColorHeaderAndFields = hclog.ForceColor, true
	}
	return hclog.New(options), nil
}

// jsonLogger writes a JSON object a line, with log/slog's keys: time, level, msg. Levels are those
// of --log-level. Durations are in seconds, with the suffix _s in their key.
func jsonLogger(out io.Writer, level hclog.Level) hclog.Logger {
	name := func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key+"_s", a.Value.Duration().Seconds())
		}
		if a.Key != slog.LevelKey {
			return a
		}
		if of, ok := a.Value.Any().(slog.Level); ok {
			a.Value = slog.StringValue(strings.ToLower(of.String()))
			if of < slog.LevelDebug {
				a.Value = slog.StringValue(hclog.Trace.String())
			}
		}
		return a
	}
	// This handler takes all levels: the logger leaves out what is below its own.
	log := cluster.LoggerFromSlog(slog.New(slog.NewJSONHandler(out,
		&slog.HandlerOptions{Level: slog.Level(math.MinInt), ReplaceAttr: name})))
	log.SetLevel(level)
	return log
}
