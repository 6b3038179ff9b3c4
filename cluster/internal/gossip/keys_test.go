package gossip

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// keysOf returns a key for each letter, and an empty key for "plain".
func keysOf(letters string) (keys Keys) {
	for name := range strings.FieldsSeq(letters) {
		if name == "plain" {
			keys = append(keys, nil)
		} else {
			keys = append(keys, bytes.Repeat([]byte(name), KeySize))
		}
	}
	return keys
}

func encrypting(letters string) option { return func(c *Config) { c.Keys = keysOf(letters) } }

// relay forwards TCP and UDP to a node, and records all of it.
type relay struct {
	tape lines
	addr string
}

// relayTo starts a relay to an address.
func relayTo(t *testing.T, addr string) *relay {
	t.Helper()
	r := &relay{addr: freeAddr(t)}
	l, err := net.Listen("tcp", r.addr)
	require.NoError(t, err)
	in, err := net.ListenPacket("udp", r.addr)
	require.NoError(t, err)
	out, err := net.Dial("udp", addr)
	require.NoError(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, _, err := in.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = r.tape.Write(buf[:n])
			_, _ = out.Write(buf[:n])
		}
	})
	pump := func(to, from net.Conn) {
		_, _ = io.Copy(io.MultiWriter(to, &r.tape), from)
		_ = to.Close()
		_ = from.Close()
	}
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", addr)
			if err != nil {
				_ = conn.Close()
				continue
			}
			work.Go(func() { pump(conn, onward) })
			work.Go(func() { pump(onward, conn) })
		}
	})
	t.Cleanup(func() {
		for _, c := range []io.Closer{l, in, out} {
			_ = c.Close()
		}
		work.Wait()
	})
	return r
}

// TestNobodyReadsAlong: a relay between encrypting nodes cannot read what they say.
func TestNobodyReadsAlong(t *testing.T) {
	for _, keys := range []string{"plain", "plain A", "A plain", "A"} {
		t.Run(keys, func(t *testing.T) {
			home := freeAddr(t)
			r := relayTo(t, home)
			behind := func(c *Config) { c.Advertise = r.addr }
			a := start(t, "first-member", bound(home), behind, encrypting(keys))
			b := start(t, "second-member", joining(r.addr), encrypting(keys))
			requireTogether(t, a, b)
			b.update(Meta{Version: "readable-version", MeshAddr: "mesh.example:1"})
			require.Eventually(t, func() bool { return a.hears("second-member", "readable-version") },
				patience, 5*time.Millisecond)
			for _, word := range []string{
				"first-member", "second-member", "readable-version", "mesh.example",
			} {
				require.Equal(t, keysOf(keys).Sends(), r.tape.Count(word) == 0, word)
			}
			require.NotZero(t, r.tape.Count("test"), "the name of the cluster is in clear")
		})
	}
}

// TestWhoHasNoKeyStaysOut, and learns why.
func TestWhoHasNoKeyStaysOut(t *testing.T) {
	const (
		foreign = "the other end encrypts gossip with a key that this node does not have"
		without = "the other end encrypts gossip, and this node has no key"
		demands = "the other end does not encrypt gossip, and this node does"
	)
	for _, c := range []struct{ member, stranger, want string }{
		{"A", "B", foreign},
		{"A", "plain", without},
		{"A", "B plain", foreign},
		{"A B", "C", foreign},
		{"A plain", "B", foreign},
		{"plain", "A", demands},
		{"plain", "A plain", demands},
	} {
		t.Run(c.member+" meets "+c.stranger, func(t *testing.T) {
			var here, there lines
			a := start(t, "a", encrypting(c.member), here.debug)
			s := start(t, "s", joining(a.gossipAddr()), encrypting(c.stranger), there.debug)
			why := func() bool {
				tries := s.Joined()
				return len(tries) == 1 && tries[0].Err != nil && strings.Contains(tries[0].Err.Error(), c.want)
			}
			require.Eventually(t, why, patience, 5*time.Millisecond, "%v", s.Joined())
			warned := func() bool { return there.Count("[WARN]") > 0 }
			require.Eventually(t, warned, patience, 5*time.Millisecond)
			require.NotZero(t, there.Count(c.want))
			require.Empty(t, a.view())
			require.Empty(t, s.view())
			for name := range strings.FieldsSeq("A B C") {
				for _, key := range keysOf(name) {
					for _, form := range []string{
						string(key), fmt.Sprintf("%x", key), fmt.Sprint(key),
						base64.StdEncoding.EncodeToString(key),
					} {
						require.Zero(t, here.Count(form)+there.Count(form), "no key is logged")
					}
				}
			}
		})
	}
}

// TestForgedMembersAreIgnored by nodes that demand encryption.
func TestForgedMembersAreIgnored(t *testing.T) {
	for keys, want := range map[string]bool{"plain": true, "A plain": true, "A": false} {
		t.Run(keys, func(t *testing.T) {
			var log lines
			a := start(t, "a", encrypting(keys), log.debug)
			came := func() bool { return a.arrived()+uint64(log.Count("packet refused")) >= 3 }
			require.Eventually(t, func() bool { invent(t, a, "ghost", right); return came() }, patience,
				5*time.Millisecond)
			if want {
				a.requireState(StateAlive, "ghost")
				return
			}
			b := start(t, "b", joining(a.gossipAddr()), encrypting(keys))
			requireTogether(t, a, b)
			require.Empty(t, a.seen(StateAlive, "ghost"))
		})
	}
}

// TestKeysChangeWithoutAGap goes from plain gossip to a key, to other keys, and back, one node
// after another. All the time news spread, newcomers can join, and no member looks dead to
// another.
func TestKeysChangeWithoutAGap(t *testing.T) {
	t.Parallel()
	now := "plain"
	a := start(t, "a", encrypting(now))
	b := start(t, "b", joining(a.gossipAddr()), encrypting(now))
	c := start(t, "c", joining(a.gossipAddr()), encrypting(now))
	nodes := []*peer{a, b, c}
	requireTogether(t, nodes...)
	news := 0
	for _, next := range []string{
		"plain A", "A plain", "A", "A B", "B A", "B", "B C A", "C B A", "C A", "C",
		"C plain", "plain C", "plain",
	} {
		for i, p := range nodes {
			changed, err := p.SetKeys(keysOf(next))
			require.NoError(t, err)
			require.True(t, changed)
			require.Equal(t, keysOf(next), p.Keys())
			for _, from := range nodes {
				news++
				text := fmt.Sprint("news ", news)
				from.update(Meta{Version: text})
				for _, to := range nodes {
					heard := func() bool { return to == from || to.hears(from.Local().Node, text) }
					require.Eventually(t, heard, patience, 5*time.Millisecond, "%s of %s to %s: %s after %s",
						text, from.Local().Node, to.Local().Node, next, now)
				}
			}
			if i == 0 {
				newcomer := elector.NodeID(fmt.Sprint("new", news))
				d := start(t, newcomer, joining(c.gossipAddr()), encrypting(next))
				a.requireState(StateAlive, newcomer)
				c.requireState(StateAlive, newcomer)
				d.Leave()
				d.kill()
			}
		}
		now = next
	}
	for _, p := range nodes {
		for _, other := range nodes {
			require.Empty(t, p.seen(StateDead, other.Local().Node))
			require.Empty(t, p.seen(StateLeft, other.Local().Node))
		}
	}
}

func TestWrongKeysAreRefused(t *testing.T) {
	a := start(t, "a", encrypting("A"))
	_, err := a.SetKeys(Keys{make([]byte, KeySize), make([]byte, 16)})
	require.EqualError(t, err, "gossip key 1 has 16 bytes; want 32, or 0 for no encryption")
	require.Equal(t, keysOf("A"), a.Keys())
	changed, err := a.SetKeys(keysOf("A"))
	require.NoError(t, err)
	require.False(t, changed)
	cfg := valid()
	cfg.Keys = Keys{{1}}
	_, err = Start(cfg)
	require.ErrorContains(t, err, `node "a": gossip key 0 has 1 bytes`)
}
