package netmesh

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/hashicorp/go-hclog"
)

// Defaults of Config.
const (
	DefaultPingInterval     = time.Second
	DefaultIdleTimeout      = 3 * time.Second
	DefaultDialTimeout      = 2 * time.Second
	DefaultHandshakeTimeout = 2 * time.Second
	DefaultRedialMin        = 50 * time.Millisecond
	DefaultRedialMax        = 2 * time.Second
	DefaultMaxFrame         = 64 << 10
)

// Bounds of Config.
const (
	// MinMaxFrame is the least that MaxFrame may be: any one message fits.
	MinMaxFrame = 4 << 10
	// MaxNameLength is the longest group or cluster name, in bytes. Names of nodes have the
	// elector's limit.
	MaxNameLength = 255
)

// Config says who this member is and how it keeps its links. The zero value of
// every field from Advertise on is its default.
type Config struct {
	Cluster  string         // name of the cluster; peers of another one are refused; 1 to 255 bytes
	Node     elector.NodeID // this member; see elector.NameProblem
	Identity [16]byte       // UUID of the data directory; not zero
	Boot     uint64         // rises with every start on the same data directory; at least 1
	Bind     string         // host:port to listen on; port 0 picks one

	Advertise string       // host:port that peers reach Bind by; "": as Bind, or as the connection shows if that names no host
	Network   Network      // nil: TCP
	Logger    hclog.Logger // nil: no logs
	Faults    *Faults      // nil: no fault layer in the path
	Seed      uint64       // of the random part of pauses between redials; 0: any

	// Voters and Agree must be equal on every node. They are compared with those of
	// each peer; what differs is a Finding and changes nothing else. A peer that
	// tells none, or lacks a setting, is not compared in that.
	Voters []elector.NodeID
	Agree  map[string]string // at most 16 settings; 1 to 48 bytes each, with a value of at most 64
	// MaxDriftPPM is by how many parts per million the rates of two nodes' clocks
	// may differ before it is a Finding; 0: they are measured and not judged.
	MaxDriftPPM int64
	Clock       Clock // whose rate is compared; nil: the time of package time

	// NoDeathProof switches proof (a) off: where L4 proxies sit between members
	// an end of stream and a refused dial prove nothing.
	NoDeathProof bool
	// HoldEvidence, if set, gets each connection whose end could prove the death of this
	// process, before the peer can take it for that, so that work which outlives the
	// process can keep it open. An error refuses the connection; it is tried again. It is
	// called from several goroutines and must return within HandshakeTimeout.
	HoldEvidence func(net.Conn) error

	PingInterval     time.Duration // between two pings on a link; default 1 s
	IdleTimeout      time.Duration // a link that is silent, or blocked, for longer is dead; default 3 s; above PingInterval
	DialTimeout      time.Duration // for a TCP connection to be made; default 2 s
	HandshakeTimeout time.Duration // for everything between connection and link; default 2 s
	RedialMin        time.Duration // first and least pause between redials; default 50 ms
	RedialMax        time.Duration // greatest pause between redials; default 2 s; at least RedialMin
	MaxFrame         int           // bytes of the largest frame, either way; default 64 KiB; at least 4 KiB
}

// Validate reports every rule that c violates, joined; nil if there is none.
// It changes nothing.
func (c Config) Validate() error {
	c = c.withDefaults()
	var v violations
	v.name("Cluster", c.Cluster)
	v.node("Node", c.Node)
	v.check(c.Identity != [16]byte{}, "Identity: zero; want the UUID of the data directory")
	v.check(c.Boot > 0, "Boot: 0; want at least 1")
	v.address("Bind", c.Bind)
	if c.Advertise != "" {
		v.address("Advertise", c.Advertise)
	}
	v.durations(c)
	v.shared(c)
	v.check(c.MaxFrame >= MinMaxFrame, "MaxFrame: %d; want at least %d bytes", c.MaxFrame, MinMaxFrame)
	return v.join()
}

// shared checks what is compared with the peers'.
func (v *violations) shared(c Config) {
	for _, voter := range c.Voters {
		v.node("Voters", voter)
	}
	v.check(len(c.Agree) <= maxSettings, "Agree: %d settings; want at most %d", len(c.Agree), maxSettings)
	for _, key := range slices.Sorted(maps.Keys(c.Agree)) {
		v.check(key != "" && len(key) <= maxSettingKey, "Agree: name %q; want 1 to %d bytes", key, maxSettingKey)
		v.check(len(c.Agree[key]) <= maxSettingValue, "Agree: %s is %q; want at most %d bytes", key, c.Agree[key], maxSettingValue)
	}
	v.check(c.MaxDriftPPM >= 0, "MaxDriftPPM: %d; want 0 or more", c.MaxDriftPPM)
}

func (v *violations) durations(c Config) {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"PingInterval", c.PingInterval}, {"IdleTimeout", c.IdleTimeout},
		{"DialTimeout", c.DialTimeout}, {"HandshakeTimeout", c.HandshakeTimeout},
		{"RedialMin", c.RedialMin}, {"RedialMax", c.RedialMax},
	} {
		v.check(d.value > 0, "%s: %s; want more than 0", d.name, d.value)
	}
	v.check(c.IdleTimeout > c.PingInterval, "IdleTimeout: %s; want more than PingInterval, %s", c.IdleTimeout, c.PingInterval)
	v.check(c.RedialMax >= c.RedialMin, "RedialMax: %s; want at least RedialMin, %s", c.RedialMax, c.RedialMin)
}

func (c Config) withDefaults() Config {
	setDefault(&c.PingInterval, DefaultPingInterval)
	setDefault(&c.IdleTimeout, DefaultIdleTimeout)
	setDefault(&c.DialTimeout, DefaultDialTimeout)
	setDefault(&c.HandshakeTimeout, DefaultHandshakeTimeout)
	setDefault(&c.RedialMin, DefaultRedialMin)
	setDefault(&c.RedialMax, DefaultRedialMax)
	setDefault(&c.MaxFrame, DefaultMaxFrame)
	setDefault(&c.Seed, rand.Uint64())
	if c.Network == nil {
		c.Network = tcpNetwork{userTimeout: c.IdleTimeout}
	}
	if c.Clock == nil {
		c.Clock = clock.Process()
	}
	if c.HoldEvidence == nil {
		c.HoldEvidence = func(net.Conn) error { return nil }
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// advertised is the address that Hello carries: the port is that of the
// listener if Bind left it open.
func (c Config) advertised(listener net.Addr) string {
	if c.Advertise != "" {
		return c.Advertise
	}
	host, _, err := net.SplitHostPort(c.Bind)
	_, port, err2 := net.SplitHostPort(listener.String())
	if err != nil || err2 != nil {
		return listener.String()
	}
	return net.JoinHostPort(host, port)
}

func badName(name string) string {
	switch {
	case name == "":
		return "empty"
	case len(name) > MaxNameLength:
		return fmt.Sprintf("%d bytes long", len(name))
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "one with spaces or control characters" // terminals and logs would obey them
	}
	return ""
}
