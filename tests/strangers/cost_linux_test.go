package strangers

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// target is a node, and what a stranger can show to it, or knows.
type target struct {
	t     testing.TB
	node  *procs.Node
	admin string          // off loopback
	own   tls.Certificate // of a member
	heard *attack         // what a member said without TLS
	bytes int             // sent so far, with the headers of packets
}

// offense is what a stranger, or a member, does to a node that does not know yet who it is.
type offense struct {
	name string
	// like names the one whose work for a byte this one's is compared with.
	like string
	// times is how often it is repeated to measure it.
	times int
	begin func(*target) (once func(), end func())
}

// Ordinary ones that others are compared with.
const (
	memberJoins = "mesh/member"
	nobodyAsks  = "http/request/no-certificate"
)

// headers of a packet, in bytes: Ethernet's, IP's and TCP's.
const headers = 14 + 20 + 20

// metered counts what is sent.
type metered struct {
	net.Conn
	x *target
}

func (m metered) Write(b []byte) (int, error) {
	m.x.bytes += len(b) + headers
	return m.Conn.Write(b)
}

// dial opens a connection of TCP, which takes four packets until it is over.
func (x *target) dial(network, addr string) net.Conn {
	conn, err := net.Dial(network, addr)
	require.NoError(x.t, err)
	if network == "tcp" {
		x.bytes += 4 * headers
	}
	_ = conn.SetDeadline(time.Now().Add(nodes.Patience))
	return metered{conn, x}
}

// handshake dials with TLS, and shows a certificate if there is one.
func (x *target) handshake(addr string, show *tls.Certificate) *tls.Conn {
	config := &tls.Config{InsecureSkipVerify: true}
	if show != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return show, nil
		}
	}
	return tls.Client(x.dial("tcp", addr), config)
}

// shakes makes a handshake, and waits for what the node says to it: nothing to a member, who is
// to say something first.
func shakes(addr func(*target) string, show func(*target) *tls.Certificate) func(*target) (
	once, end func(),
) {
	return func(x *target) (once, end func()) {
		shown := show(x)
		return func() {
			conn := x.handshake(addr(x), shown)
			_ = conn.Handshake()
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}, func() {}
	}
}

// asks sends requests on one connection.
func asks(
	show func(*target) *tls.Certificate, request string,
) func(*target) (once, end func()) {
	return func(x *target) (once, end func()) {
		conn := x.handshake(x.admin, show(x))
		answers := bufio.NewReader(conn)
		return func() {
			if _, err := conn.Write([]byte(request)); err != nil {
				return // it is not let in at all
			}
			answer, err := http.ReadResponse(answers, nil)
			if err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				require.Equal(x.t, "4", fmt.Sprint(answer.StatusCode)[:1], "it is refused")
			}
		}, func() { _ = conn.Close() }
	}
}

const get = "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"

func onMesh(x *target) string          { return x.node.MeshAddr }
func onHTTP(x *target) string          { return x.admin }
func nothing(*target) *tls.Certificate { return nil }
func ofMember(x *target) *tls.Certificate {
	return &x.own
}

// measure repeats an offense, and returns the node's processor time for a byte of it, in
// nanoseconds: 0 if the node does not listen any more.
func (x *target) measure(o offense) (perByte float64) {
	once, end := o.begin(x)
	defer end()
	once() // what comes with a connection is not a request's
	sent, used := x.bytes, processorOf(x.t, x.node)
	for range o.times {
		once()
	}
	used, sent = processorOf(x.t, x.node)-used, x.bytes-sent
	if sent == 0 {
		return 0
	}
	return float64(used) / float64(sent)
}

// goes is how often something is measured: the median counts.
const goes = 5

// processorOf is the time that all threads of a process have had, in nanoseconds.
func processorOf(t testing.TB, n *procs.Node) (sum time.Duration) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", n.Pid()))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		var ran time.Duration
		if _, no := fmt.Sscan(string(text), &ran); err == nil && no == nil {
			sum += ran
		}
	}
	return sum
}

// aim starts a node that strangers can reach.
func aim(t testing.TB, encrypted bool) *target {
	s, admin, pki := exposed(t, nodes.Quick(), encrypted, 1, "n2")
	x := &target{t: t, node: s.Nodes()[0], heard: &attack{}, admin: admin["n1"]}
	if encrypted {
		var err error
		x.own, _, err = certs.Load(filepath.Join(pki, "n2"))
		require.NoError(t, err)
	}
	require.NoError(t, s.Start())
	s.Agree(s.Nodes(), nil)
	return x
}

// offenses are those that TLS leaves possible.
func offenses() (all []offense) {
	all = []offense{
		{memberJoins, "", 50, shakes(onMesh, ofMember)},
		{"mesh/no-certificate", memberJoins, 50, shakes(onMesh, nothing)},
		{nobodyAsks, "", 300, asks(nothing, get)},
		{"http/no-certificate", memberJoins, 50, shakes(onHTTP, nothing)},
		{"http/request/many-headers", nobodyAsks, 50, asks(nothing, "GET / HTTP/1.1\r\nHost: x\r\n"+
			strings.Repeat("x: y\r\n", 5000)+"\r\n")},
		{"http/request/long-path", nobodyAsks, 50, asks(nothing, "GET /"+strings.Repeat("%2f../", 5000)+
			" HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"http/request/body", nobodyAsks, 50, asks(nothing, "POST /v1/faults HTTP/1.1\r\nHost: x\r\n"+
			"Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n"+strings.Repeat("[", 60000))},
	}
	for _, c := range chains {
		show := func(x *target) *tls.Certificate { return c.made(x) }
		all = append(all,
			offense{"mesh/" + c.name, memberJoins, 6, shakes(onMesh, show)},
			offense{"http/" + c.name, memberJoins, 6, shakes(onHTTP, show)},
			offense{"http/request/" + c.name, nobodyAsks, 6, asks(show, get)},
		)
	}
	return all
}

// mostWork is how many times as much work a byte of a stranger may make as a byte of a member, or
// of an ordinary request. Without TLS there are short packets that end in an error.
var mostWork = map[string]float64{"TLS": 4, "insecure": 8}

// Whoever wants to keep a node busy has to send a lot for that, whatever is sent. Each offense is
// measured between two ordinary ones, so that it does not matter how busy the machine is.
func TestAStrangersByteCostsNoMoreThanAMembers(t *testing.T) {
	for name, all := range map[string][]offense{"TLS": offenses(), "insecure": openly()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := aim(t, name == "TLS")
			for _, o := range all {
				i := slices.IndexFunc(all, func(c offense) bool { return c.name == o.like })
				if i >= 0 {
					t.Run(o.name, func(t *testing.T) { x.compare(t, o, all[i], mostWork[name]) })
				}
			}
		})
	}
}

func (x *target) compare(t *testing.T, o, ordinary offense, most float64) {
	var ratios []float64
	before := x.measure(ordinary)
	for range goes {
		cost, after := x.measure(o), x.measure(ordinary)
		ratios = append(ratios, 2*cost/(before+after))
		before = after
	}
	slices.Sort(ratios)
	ratio := ratios[goes/2]
	t.Logf("a byte costs %.2f times as much as in %s", ratio, o.like)
	require.Less(t, ratio, most, ratios)
}
