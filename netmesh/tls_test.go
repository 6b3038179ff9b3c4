package netmesh

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// claim is a process that claims to be b of the cluster "test": its credentials, and the errors
// that it gets from a member of that cluster.
type claim struct {
	*Credentials

	dialing, accepting string // to it when it dials, and when it is dialed; "" for no refusal
}

// claims returns the credentials of a, and processes that claim to be b.
func claims(t *testing.T) (a *Credentials, all map[string]claim) {
	t.Helper()
	dir := t.TempDir()
	issue := func(cluster, node string, valid time.Duration) *Credentials {
		at, _, _ := strings.Cut(cluster, "/")
		made, err := certs.Issue(filepath.Join(dir, cluster), at, []string{node}, valid)
		require.NoError(t, err)
		return load(made[0].Dir)
	}
	a, right := issue("test", "a", time.Hour), issue("test", "b", time.Hour)
	foreign, other := issue("other", "b", time.Hour), issue("test/unknown", "b", time.Hour)
	text, err := os.ReadFile(filepath.Join(dir, "other", "ca.crt"))
	require.NoError(t, err)
	require.True(t, a.Roots.AppendCertsFromPEM(text), "a trusts two CAs")
	made := func(edit func(*x509.Certificate)) *Credentials {
		return handmade(t, filepath.Join(dir, "test"), right, edit)
	}
	both := func(c *Credentials, text string) claim {
		return claim{&Credentials{Certificate: c.Certificate, Roots: a.Roots}, text, text}
	}
	dated := "certificate has expired or is not yet valid"
	uri := func(text string) []*url.URL {
		u, err := url.Parse(text)
		require.NoError(t, err)
		return []*url.URL{u}
	}
	followed := func(by []byte) *Credentials {
		c := *right
		c.Certificate.Certificate = append(slices.Clone(c.Certificate.Certificate), by, by, by, by)
		return &c
	}
	return a, map[string]claim{
		"right":           both(right, ""),
		"a long chain":    both(followed(right.Certificate.Certificate[0]), "must have at most 4"),
		"another node":    both(issue("test", "c", time.Hour), `for ["bmqelect://test/c" "c"], but must be for bmq`),
		"another cluster": both(foreign, `for ["bmqelect://other/b" "b"], but must be for bmqelect://test/`),
		"unknown CA":      both(other, "certificate signed by unknown authority"),
		"expired":         both(issue("test", "b", -time.Minute), dated),
		"not yet valid": both(made(func(c *x509.Certificate) {
			c.DNSNames, c.NotBefore = []string{"b"}, time.Now().Add(time.Hour)
		}), dated),
		"no name": both(made(func(c *x509.Certificate) {}), "for nobody: it has neither URI nor DNS name"),
		"DNS name": both(made(func(c *x509.Certificate) {
			c.DNSNames = []string{"elsewhere", "b"}
		}), ""),
		"DNS name of another": both(made(func(c *x509.Certificate) { c.DNSNames = []string{"c"} }), `for ["c"]`),
		"DNS wildcard":        both(made(func(c *x509.Certificate) { c.DNSNames = []string{"*"} }), `for ["*"]`),
		"DNS name in another cluster": both(made(func(c *x509.Certificate) {
			c.DNSNames, c.URIs = []string{"b"}, uri("bmqelect://other/b")
		}), `for ["bmqelect://other/b" "b"]`),
		"operator": both(made(func(c *x509.Certificate) {
			c.URIs = uri("bmqelect://test/operator/b")
		}), `for ["bmqelect://test/operator/b"], but must be for bmqelect://test/`),
		"for dialing only": {made(func(c *x509.Certificate) {
			c.DNSNames, c.ExtKeyUsage = []string{"b"}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), "", "incompatible key usage"},
		"for accepting only": {made(func(c *x509.Certificate) {
			c.DNSNames, c.ExtKeyUsage = []string{"b"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), "incompatible key usage", ""},
	}
}

// handmade is a certificate of the CA in dir, with the key of another one.
func handmade(
	t *testing.T, dir string, key *Credentials, edit func(*x509.Certificate),
) *Credentials {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	template := &x509.Certificate{
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(2 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	edit(template)
	public := key.Certificate.Leaf.PublicKey
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, public, ca.PrivateKey)
	require.NoError(t, err)
	made := key.Certificate
	made.Certificate, made.Leaf = [][]byte{der}, nil
	return &Credentials{Certificate: made, Roots: key.Roots}
}

// member reports whether the names of the certificate belong to a member of the cluster "test".
func (c claim) member() bool {
	leaf, err := x509.ParseCertificate(c.Certificate.Certificate[0])
	return err == nil && c.dialing[:3] == "for" && certs.Problem(leaf, "test", "") == ""
}

// mesh is as much of the mesh of the claimant as a handshake needs.
func (c claim) mesh() *Mesh {
	cfg := testConfig("b")
	shows(c.Credentials)(&cfg)
	return &Mesh{cfg: cfg}
}

// TestWhoDialsIsKnownByItsCertificate before any of its frames is read, unless it is a member: the
// first frame here would be refused for another reason.
func TestWhoDialsIsKnownByItsCertificate(t *testing.T) {
	own, all := claims(t)
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lines
			a := start(t, "a", shows(own), logs(&log))
			conn, err := net.Dial("tcp", a.Addr().String())
			require.NoError(t, err)
			defer reset(conn)
			h, m := newHandshake(conn, patience), c.mesh()
			require.NoError(t, h.secure(m, "a"), "it knows a")
			mine := m.hello("a", 1)
			if c.dialing != "" {
				mine.Magic = "nonsense"
			}
			mine.Boot, mine.Identity = 1, []byte("0123456789abcdef")
			require.NoError(t, h.send(frameHello, mine))
			err = h.expect(frameWelcome, &hello{})
			if c.dialing == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, ReasonTLS, reasonOf(err))
			if c.member() {
				require.ErrorContains(t, err, `node "b": the certificate is for`)
			} else {
				require.ErrorContains(t, err, "does not accept this node's certificate, and its log says")
			}
			require.Eventually(t, func() bool { return log.have(c.dialing) }, patience, glance, &log)
			require.Equal(t, map[Reason]uint64{ReasonTLS: 1}, a.Counters())
		})
	}
}

// TestWhoIsDialedIsKnownByItsCertificate, before a frame is sent to it.
func TestWhoIsDialedIsKnownByItsCertificate(t *testing.T) {
	own, all := claims(t)
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			a := start(t, "a", shows(own))
			a.AddPeer("b", l.Addr().String())
			conn, err := l.Accept()
			require.NoError(t, err)
			defer reset(conn)
			var tape bytes.Buffer
			taped := &tapped{ofTCP: conn.(ofTCP), read: func(b []byte, _ error) { tape.Write(b) }}
			h := newHandshake(taped, patience)
			err = h.secure(c.mesh(), "")
			if c.accepting == "" {
				require.NoError(t, err)
				require.NoError(t, h.expect(frameHello, &hello{}))
				return
			}
			require.ErrorContains(t, err, "does not accept this node's certificate, and its log says why")
			a.fails(t, "refused (tls): ")
			require.Contains(t, a.Links()[0].LastErr, c.accepting)
			a.observes(t, "b refused tls", c.accepting)
			_, _ = io.Copy(io.Discard, taped)
			require.Equal(t, [][2]int{{22, 0}, {20, 0}, {23, 2 + 1 + 16}}, records(tape.Bytes()),
				"its greeting, what is for old proxies, and an alert alone")
		})
	}
}

// records are the kinds of TLS records, and the lengths of those that are encrypted.
func records(tape []byte) (all [][2]int) {
	for rest := tape; len(rest) >= 5; {
		kind, length := int(rest[0]), int(binary.BigEndian.Uint16(rest[3:]))
		rest = rest[5+length:]
		if kind != 23 {
			length = 0
		}
		all = append(all, [2]int{kind, length})
	}
	return all
}

// TestWhoHasNoCertificateIsRefused: only members speak.
func TestWhoHasNoCertificateIsRefused(t *testing.T) {
	a := start(t, "a", encrypted)
	conn, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err, "it does not know yet")
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "tls: certificate required")
	a.counts(t, ReasonTLS)
}

// TestOldTLSIsRefused: before TLS 1.3 anybody can read certificates.
func TestOldTLSIsRefused(t *testing.T) {
	a := start(t, "a", encrypted)
	_, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{
		InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
	})
	require.ErrorContains(t, err, "protocol version not supported")
	a.counts(t, ReasonTLS)
}

// TestNoMemberSpeaksForAnother: what a member says about itself is compared with its certificate.
func TestNoMemberSpeaksForAnother(t *testing.T) {
	for name, change := range map[string]func(*hello){
		"node":    func(h *hello) { h.Node = "y" },
		"cluster": func(h *hello) { h.Cluster = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, "a", encrypted)
			s, h := intrude(t, a), helloFrom(a)
			change(h)
			require.NoError(t, s.send(frameHello, h))
			require.ErrorContains(t, s.expect(frameWelcome, &hello{}),
				`refused by the peer (tls): node "`+h.Node+`": the certificate is for ["bmqelect://test/x" "x"]`)
			a.counts(t, ReasonTLS)
			a.observes(t, h.Node+" refused tls")
		})
	}
}

// TestNothingReadablePasses over a network on which somebody reads along.
func TestNothingReadablePasses(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		tape := &lines{}
		noProof := func(c *Config) { c.DeathProof.Off, c.Meta = true, "readable-meta" }
		a, child := start(t, "a", edit, noProof), start(t, "child", edit, noProof)
		forwardFrom(t, l, func() (net.Conn, error) {
			c, err := net.Dial("tcp", child.Addr().String())
			if err != nil {
				return nil, err
			}
			return &tapped{c.(ofTCP), func(b []byte, _ error) { _, _ = tape.Write(b) },
				func(b []byte) { _, _ = tape.Write(b) }}, nil
		})
		a.AddPeer("child", l.Addr().String())
		a.sees(t, "child", "up 1")
		child.sees(t, "a", "up 1")
		require.True(t, a.Send("child", "readable-group", ack(1)))
		child.sees(t, "a", "readable-group HeartbeatAck 1")
		key := string(a.linkTo("child").key)
		for _, word := range []string{"child", "readable-meta", "readable-group", key, magic} {
			if a.cfg.TLS != nil {
				require.NotContains(t, tape.String(), word)
			} else {
				require.Contains(t, tape.String(), word, "the test can see it")
			}
		}
	})
}

// TestAFrameIsOneRecord: so it is one write and one packet.
func TestAFrameIsOneRecord(t *testing.T) {
	a := start(t, "a", encrypted)
	conn, err := net.Dial("tcp", a.Addr().String())
	require.NoError(t, err)
	defer reset(conn)
	writes := 0
	raw := &tapped{ofTCP: conn.(ofTCP), written: func([]byte) { writes++ }}
	h := newHandshake(raw, patience)
	require.NoError(t, h.secure(asX(), "a"))
	writes = 0
	_, err = h.conn.Write(make([]byte, 10_000))
	require.NoError(t, err)
	require.Equal(t, 1, writes)
}

// TestSlowGreetingEnds: the limit of a handshake includes that of TLS.
func TestSlowGreetingEnds(t *testing.T) {
	virtual(t, func(t *testing.T, network *memnet.Network) {
		a := start(t, "a", onHost(network, encrypted))
		conn, err := network.Host("x").Dial(t.Context(), "a:7000")
		require.NoError(t, err)
		began, slow := time.Now(), sync.WaitGroup{}
		slow.Go(func() {
			for i := range 4096 { // bytes of a record, one at a time
				next := byte(0)
				if start := []byte{firstOfTLS, 3, 1, 16, 0}; i < len(start) {
					next = start[i]
				}
				if _, err := conn.Write([]byte{next}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		for len(a.Counters()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, map[Reason]uint64{reasonSilent: 1}, a.Counters())
		require.LessOrEqual(t, time.Since(began), a.Mesh.cfg.times.handshake+20*time.Millisecond)
		slow.Wait()
	})
}

// TestAlertsOnAnEvidenceConnectionAreNoEnd: a living process could send one.
func TestAlertsOnAnEvidenceConnectionAreNoEnd(t *testing.T) {
	a := start(t, "a", encrypted)
	m := inKernel(t, a)
	e := m.evidence()
	_ = m.listener.Close()
	require.NoError(t, e.conn.(*secured).Conn.CloseWrite(), "TLS says that it ends; TCP goes on")
	a.counts(t, ReasonGarbage)
	a.sees(t, "x", "down local")
	require.Zero(t, a.count("x", "died refused-after-eof"))
}

// TestNewCredentialsAreForNewLinks: those that stand stay.
func TestNewCredentialsAreForNewLinks(t *testing.T) {
	c := credentialsOf("b")
	var now sync.Map
	now.Store("b", c)
	a := start(t, "a", encrypted)
	b := start(t, "b", func(cfg *Config) {
		cfg.TLS = func() *Credentials { v, _ := now.Load("b"); return v.(*Credentials) }
	})
	b.knows(a)
	a.sees(t, "b", "up 1")
	_, all := claims(t)
	now.Store("b", all["right"].Credentials) // of a CA that a does not know
	require.True(t, b.Send("a", "g", ack(1)))
	a.sees(t, "b", "g HeartbeatAck 1")
	require.Equal(t, 1, a.up())
	b.resetLink("a")
	refused := func() bool { return a.up() == 0 && b.Counters()[ReasonTLS] > 0 }
	until(t, refused)
	now.Store("b", c)
	until(t, func() bool { return a.up() == 1 && b.up() == 1 })
}

func TestCredentialsAreCheckedBeforeUse(t *testing.T) {
	_, all := claims(t)
	for name, c := range all {
		from, until, err := c.Check("test", "b")
		want := c.dialing
		if want == "" {
			want = c.accepting
		}
		if want == "" {
			require.NoError(t, err, name)
			require.WithinDuration(t, time.Now().Add(90*time.Minute), until, time.Hour, name)
			require.WithinDuration(t, time.Now().Add(-time.Hour), from, time.Minute, name)
			continue
		}
		require.ErrorContains(t, err, want, name)
	}
	_, _, err := (&Credentials{}).Check("test", elector.NodeID("b"))
	require.ErrorContains(t, err, "a certificate or the roots are missing")
}

// TestHeartbeatsWithTLSAllocateAsLittleAsItCan: only crypto/tls allocates, 24 bytes for each record
// that it reads.
func TestHeartbeatsWithTLSAllocateAsLittleAsItCan(t *testing.T) {
	alone := func(c *Config) {
		encrypted(c)
		c.times.ping, c.times.idle = time.Hour, 2*time.Hour // pings allocate, too
	}
	x, here := echoing(t, "x", alone)
	y, there := echoing(t, "y", alone)
	x.AddPeer("y", y.Addr().String())
	<-here.got
	<-there.got
	// The handshake of the evidence connection allocates, too: as much as 5 a heartbeat.
	proven := func() bool { return x.Links()[0].Evidence && y.Links()[0].Evidence }
	until(t, proven)
	trip := func() {
		x.Send("y", "default", heartbeat(1))
		<-here.got
	}
	for range 100 {
		trip()
	}
	// A record each way makes 2 allocations. The race detector empties pools at random.
	require.LessOrEqual(t, testing.AllocsPerRun(200, trip), 4.0)
}
