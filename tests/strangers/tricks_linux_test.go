package strangers

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	crand "crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/netmesh"
)

// trick is what a stranger does on a connection, again and again.
type trick func(ctx context.Context, conn net.Conn)

// besiege does everything to every port of a node until ctx ends.
func (a *attack) besiege(ctx context.Context, all *sync.WaitGroup, n *procs.Node) {
	hello := greeting()
	tricks := []trick{
		says(), says(junk()...),
		says(0xff, 0xff, 0xff, 0xff, 1), says(0, 0, 8, 0, 1, 0xdd, 0xff, 0xff),
		says([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")...),
		says(hello...), says(hello[:len(hello)/2]...),
		slowly(hello), slowly([]byte(strings.Repeat("\x00", 4096))),
		slowly([]byte("GET /v1/status HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20))),
		slowly([]byte("POST /v1/transfer HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{")),
		says([]byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 2<<20))...),
		// A stream of gossip that announces many members, and one that is large once unpacked.
		says(244, 1, 'x', 6, 0x83), says(append([]byte{9}, make([]byte, 1<<20)...)...),
	}
	for _, conn := range a.recorded {
		tricks = append(tricks, says(conn...))
	}
	for _, port := range []string{n.MeshAddr, n.GossipAddr, a.admin[n.Name]} {
		for _, act := range tricks {
			all.Go(func() { a.repeat(ctx, port, act) })
		}
		all.Go(func() { a.crowd(ctx, port, idleConns()/9) })
	}
	all.Go(func() { a.floods(ctx, n) })
	all.Go(func() { a.haunts(ctx, n) })
}

// idleConns is how many idle connections strangers have at a time: 10,000 if the test is to
// last, and if half of the descriptors are enough.
func idleConns() int {
	if os.Getenv("STRANGERS_TIME") == "" {
		return 900
	}
	return min(10_000, openFiles()/2)
}

// dial connects from one of a few hundred addresses.
func (a *attack) dial(ctx context.Context, addr string) net.Conn {
	var d net.Dialer
	if strings.HasPrefix(addr, "127.") {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 66, 0, byte(rand.IntN(256)))}
	}
	conn, err := d.DialContext(ctx, "tcp", addr)
	a.dials.Add(1)
	if err != nil {
		a.refused.Add(1)
		return nil
	}
	return conn
}

func (a *attack) repeat(ctx context.Context, addr string, act trick) {
	for ; ctx.Err() == nil; time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) {
		if conn := a.dial(ctx, addr); conn != nil {
			act(ctx, conn)
			_ = conn.Close()
		}
	}
}

// crowd keeps connections on which it says nothing, each for ten seconds.
func (a *attack) crowd(ctx context.Context, addr string, count int) {
	const each = 10 * time.Second
	idle := make([]net.Conn, count)
	for i := 0; ctx.Err() == nil; i = (i + 1) % count {
		if idle[i] != nil {
			_ = idle[i].Close()
		}
		idle[i] = a.dial(ctx, addr)
		rest(ctx, each/time.Duration(count))
	}
	for _, conn := range idle {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// says sends text, and waits for the end of the connection.
func says(text ...byte) trick {
	return func(_ context.Context, conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		_, _ = conn.Write(text)
		_, _ = io.Copy(io.Discard, conn)
	}
}

// slowly sends text byte by byte.
func slowly(text []byte) trick {
	return func(ctx context.Context, conn net.Conn) {
		for i := range text {
			if _, err := conn.Write(text[i : i+1]); err != nil || ctx.Err() != nil {
				return
			}
			rest(ctx, 50*time.Millisecond)
		}
	}
}

func junk() []byte {
	text := make([]byte, 64<<10)
	_, _ = crand.Read(text)
	return text
}

// greeting is how a TLS client begins: a node does much for it.
func greeting() []byte {
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(ours, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	text := make([]byte, 4096)
	n, _ := theirs.Read(text)
	_ = theirs.Close()
	return text[:n]
}

// tape is TCP that keeps what is sent on connections that were dialed.
type tape struct {
	mu   sync.Mutex
	sent []*bytes.Buffer
}

type tapedConn struct {
	*net.TCPConn
	tape *tape
	sent *bytes.Buffer
}

func (t *tape) Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

func (t *tape) Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = append(t.sent, &bytes.Buffer{})
	return &tapedConn{conn.(*net.TCPConn), t, t.sent[len(t.sent)-1]}, nil
}

func (c *tapedConn) Write(b []byte) (int, error) {
	c.tape.mu.Lock()
	c.sent.Write(b)
	c.tape.mu.Unlock()
	return c.TCPConn.Write(b)
}

// listenIn records what a member sends when it makes its link and its evidence connection.
func (a *attack) listenIn(t testing.TB, n *procs.Node) {
	recording := &tape{}
	as := netmesh.Config{Cluster: cluster.DefaultCluster, TLS: a.tls, Network: recording}
	m := nodes.Intrude(t, n, as, nodes.Silent{})
	linked := func() bool { return len(m.Links()) == 1 && m.Links()[0].Up && m.Links()[0].Evidence }
	require.Eventually(t, linked, nodes.Patience, 10*time.Millisecond)
	require.NoError(t, m.Close(t.Context()))
	for _, sent := range recording.sent {
		a.recorded = append(a.recorded, sent.Bytes())
	}
}

// floods sends packets of gossip, as fast as a thousand a second: junk, and such as say with
// the cluster's key, if there is one, that members are dead.
func (a *attack) floods(ctx context.Context, n *procs.Node) {
	conn, err := net.Dial("udp", n.GossipAddr)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	text := junk()
	for i := uint32(0); ctx.Err() == nil; i++ {
		packet := append([]byte{byte(i)}, text[:rand.IntN(1400)]...)
		if i%4 == 0 {
			packet = a.sealed(saysDead(fmt.Sprint("n", 1+rand.IntN(3)), i))
		}
		_, _ = conn.Write(packet)
		a.packets.Add(1)
		time.Sleep(time.Millisecond)
	}
}

// saysDead is memberlist's message that a member is dead.
func saysDead(node string, incarnation uint32) []byte {
	var body []byte
	err := codec.NewEncoderBytes(&body, &codec.MsgpackHandle{}).Encode(map[string]any{
		"Incarnation": incarnation, "Node": node, "From": "stranger",
	})
	if err != nil {
		panic(err)
	}
	const typeDead = 5
	return append([]byte{typeDead}, body...)
}

// sealed is a packet of the cluster, with its key if it has one.
func (a *attack) sealed(text []byte) []byte {
	label := []byte(cluster.DefaultCluster)
	head := append([]byte{244, byte(len(label))}, label...)
	if a.key == nil {
		return append(head, text...)
	}
	block, err := aes.NewCipher(a.key)
	if err != nil {
		panic(err)
	}
	gcm, _ := cipher.NewGCM(block)
	nonce := make([]byte, gcm.NonceSize())
	_, _ = crand.Read(nonce)
	head = append(append(head, 1), nonce...) // version 1: without padding
	return gcm.Seal(head, nonce, text, label)
}

// haunts joins gossip under one invented name after the other, with the key.
func (a *attack) haunts(ctx context.Context, n *procs.Node) {
	for i := 0; ctx.Err() == nil; i++ {
		cfg := memberlist.DefaultLocalConfig()
		cfg.Name, cfg.Label = n.Name+"-ghost-"+strconv.Itoa(i), cluster.DefaultCluster
		cfg.BindAddr, cfg.BindPort, cfg.LogOutput = "127.0.0.1", 0, io.Discard
		cfg.SecretKey = a.key
		ghost, err := memberlist.Create(cfg)
		if err != nil {
			panic(err)
		}
		_, _ = ghost.Join([]string{n.GossipAddr})
		a.ghosts.Add(1)
		rest(ctx, 200*time.Millisecond)
		_ = ghost.Shutdown()
	}
}

// openFiles is how many files this process may have open.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	return int(limit.Cur)
}
