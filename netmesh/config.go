package netmesh

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

const (
	// MaxNameLength is the longest group or cluster name, in bytes. Names of nodes have the
	// elector's limit.
	MaxNameLength = 255

	// MaxMeta is the longest Config.Meta, in bytes.
	MaxMeta = 512

	maxFrame = 64 << 10 // bytes of the largest frame, either way

	longestHandshake = 2 * time.Second
)

// Config says who this member is and how it keeps its links. The zero value of
// every field from Advertise on is its default.
type Config struct {
	Cluster  string         // name of the cluster; peers of another one are refused; 1 to 255 bytes
	Node     elector.NodeID // this member; see elector.NameProblem
	Identity [16]byte       // UUID of the data directory; not zero
	Boot     uint64         // rises with every start on the same data directory; at least 1
	Bind     string         // host:port to listen on; port 0 picks one

	// Advertise is the host:port that peers reach Bind by. Empty: as Bind, or as the
	// connection shows if Bind names no host.
	Advertise string
	Network   Network      // nil: TCP
	Logger    hclog.Logger // nil: no logs
	Faults    FaultLayer   // nil: no fault layer in the path
	Facts     Facts        // told to each peer; see Mesh.Tell
	// Voter, if set, reports whether a node may vote or lead here, in place of the voters of Facts.
	// It is called from several goroutines, and must return at once.
	Voter func(elector.NodeID) bool
	Meta  string // told to each peer in the handshake; printable, at most MaxMeta bytes
	Clock Clock  // whose times pings carry; nil: the time of package time

	// TLS, if set, returns the credentials of this member for the next connection. Frames then
	// pass over TLS 1.3 alone, between processes whose certificates show that they are members,
	// unless Credentials.AcceptPlain is set. TLS is called from several goroutines, must return
	// at once, and never returns nil. nil: no TLS.
	TLS func() *Credentials

	// Identities are the data directories that each name has had, the newest last, as
	// PeerInfo.Identities reported them. All but the newest of a name are refused.
	Identities map[elector.NodeID][]uuid.UUID

	// DeathProof says how this member takes part in proofs of death.
	DeathProof DeathProof

	// Inactivity is the time after which the election takes a leader for lost. The mesh
	// derives its times from it, so that they never outweigh those of the election. 0 or
	// 4 s and more: the greatest times. With I for Inactivity:
	//
	//	idle time-out     2 I               100 ms to 3 s    a silent or blocked link ends
	//	ping interval     idle time-out / 3                  while round trips are little known
	//	                  a tenth of that, or two            while an answer is missing for longer
	//	                  round trips if that is more        than that
	//	                  at least 1 s                       otherwise
	//	dial time-out     I / 2              50 ms to 2 s    with the pause after it, a
	//	longest redial    I / 2              10 ms to 2 s    network that heals is in use after I
	//	shortest redial   longest / 10     at most 50 ms
	//	handshake         I                 100 ms to 2 s    from connection to link; 2 s if
	//	                                                     the peer dialed, and up to 2 s
	//	                                                     if the ones before took longer
	Inactivity time.Duration

	times times // what is not zero replaces what Inactivity says; for tests
}

// DeathProof configures the proof that a process has ended (§6.5). With the zero value members
// prove it to each other.
type DeathProof struct {
	// Off switches the proof off, certificates included. An end of stream and a refused dial
	// prove nothing where layer 4 proxies sit between members.
	Off bool
	// Hold, if set, is called with each connection whose end could prove the death of this
	// process, before the peer relies on that connection. So work that outlives the process can
	// keep it open. An error refuses the connection, and the peer tries again. Hold is called
	// from several goroutines and must return within 100 ms.
	//
	// A parent that has waited for the end of this process may write the certificate to the
	// connection, and the peer believes it at once. The certificate is nil if the peer's build
	// knows none. Writing it earlier breaks the promise that no two nodes lead.
	Hold func(conn net.Conn, certificate []byte) error
}

// times are the times of a mesh; see Config.Inactivity.
type times struct {
	idle, ping, dial, redialMax, redialMin, handshake time.Duration
	handshakeMost                                     time.Duration
}

func (c Config) derivedTimes() times {
	within := func(least, d, most time.Duration) time.Duration {
		if c.Inactivity == 0 {
			return most
		}
		return min(max(least, d), most)
	}
	t, i := c.times, c.Inactivity
	setDefault(&t.idle, within(100*time.Millisecond, 2*i, 3*time.Second))
	setDefault(&t.ping, t.idle/3)
	setDefault(&t.dial, within(50*time.Millisecond, i/2, 2*time.Second))
	setDefault(&t.redialMax, within(10*time.Millisecond, i/2, 2*time.Second))
	setDefault(&t.redialMin, min(t.redialMax/10, 50*time.Millisecond))
	setDefault(&t.handshake, within(100*time.Millisecond, i, longestHandshake))
	setDefault(&t.handshakeMost, max(t.handshake, longestHandshake))
	return t
}

// Validate reports every rule that c violates, joined; nil if there is none.
// It changes nothing.
func (c Config) Validate() error {
	var broken []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf(format, args...))
		}
	}
	problem := NameProblem(c.Cluster)
	check(problem == "", "Cluster: %s; want 1 to %d bytes", problem, MaxNameLength)
	problem = elector.NameProblem(c.Node)
	check(problem == "", "Node: %q: the name is %s", c.Node, problem)
	check(c.Identity != [16]byte{}, "Identity: zero; want the UUID of the data directory")
	check(c.Boot > 0, "Boot: 0; want at least 1")
	_, _, err := net.SplitHostPort(c.Bind)
	check(err == nil, "Bind: %q is not host:port: %v", c.Bind, err)
	if c.Advertise != "" {
		_, _, err = net.SplitHostPort(c.Advertise)
		check(err == nil, "Advertise: %q is not host:port: %v", c.Advertise, err)
	}
	check(c.Inactivity >= 0, "Inactivity: %s; want 0 or more", c.Inactivity)
	check(MetaFits(c.Meta), "Meta: %q; want printable text of at most %d bytes", c.Meta, MaxMeta)
	err = c.Facts.check()
	check(err == nil, "Facts: %v", err)
	if err := errors.Join(broken...); err != nil {
		return fmt.Errorf("netmesh config: %w", err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.times = c.derivedTimes()
	if c.Network == nil {
		c.Network = tcpNetwork{}
	}
	if c.Clock == nil {
		c.Clock = clock.Process()
	}
	if c.DeathProof.Hold == nil {
		c.DeathProof.Hold = func(net.Conn, []byte) error { return nil }
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// isVoter reports whether a node has a vote, or may have one.
func (c *Config) isVoter(node elector.NodeID) bool {
	if c.Voter != nil {
		return c.Voter(node)
	}
	return c.Facts.isVoter(string(node))
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

// MetaFits reports whether text may be a Config.Meta.
func MetaFits(text string) bool { return words.Printable(text, MaxMeta) == text }

// NameProblem says what is wrong with the name of a group or cluster, to go after "its name
// is"; "" if nothing is.
func NameProblem(name string) string {
	unfit := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	switch {
	case name == "":
		return "empty"
	case len(name) > MaxNameLength:
		return fmt.Sprintf("%d bytes long", len(name))
	case strings.ContainsFunc(name, unfit):
		return "one with spaces or control characters" // terminals and logs would obey them
	}
	return ""
}
