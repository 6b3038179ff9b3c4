package kubelock

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// Three clusters without a common API server: each member knows the others only by the address of a
// balancer before each, and by its certificate. The others go on when the leader has gone.
func TestOneLeaderOverSeveralClusters(t *testing.T) {
	pki := t.TempDir()
	_, err := certs.Issue(pki, cluster.DefaultCluster, []string{"a", "b", "c"}, time.Hour)
	require.NoError(t, err)
	pid := os.Getpid() // a loopback address of this process: its ports are free
	base := fmt.Sprintf("127.%d.%d.%d", 10+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
	inside := func(n, port int) string { return fmt.Sprintf("%s:%d", base, 7811+10*n+port) }
	outside := func(n, port int) string { return fmt.Sprintf("%s:%d", base, 7911+10*n+port) }
	works := make(chan int, len(three))
	stop, ended := make([]func(), len(three)), make([]chan struct{}, len(three))
	for n, id := range three {
		for port := range 2 {
			forwardTCP(t, outside(n, port), inside(n, port))
		}
		forwardUDP(t, outside(n, 0), inside(n, 0))
		cfg := nodeConfig(string(id), t.TempDir(), []string{outside(0, 0), outside(1, 0), outside(2, 0)})
		cfg.GossipAddr, cfg.MeshAddr = inside(n, 0), inside(n, 1)
		cfg.AdvertiseGossip, cfg.AdvertiseMesh = outside(n, 0), outside(n, 1)
		cfg.NoDeathProof, cfg.TLS = true, cluster.TLSDir(filepath.Join(pki, string(id)))
		node, err := cluster.Start(t.Context(), cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		lock, err := NewLock(ctx, node, cluster.DefaultGroup, nil)
		require.NoError(t, err)
		mgr := newManager(t, lock, true)
		require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			works <- n
			<-ctx.Done()
			return nil
		})))
		stop[n], ended[n] = cancel, make(chan struct{})
		go func() {
			defer close(ended[n])
			_ = mgr.Start(lock.Context())
			_ = node.Close(context.Background())
		}()
		t.Cleanup(func() { cancel(); <-ended[n] })
	}
	await := func() int {
		select {
		case n := <-works:
			return n
		case <-time.After(testkit.Limit(time.Minute)):
			require.Fail(t, "nobody works")
			return 0
		}
	}
	first := await()
	stop[first]()
	<-ended[first]
	require.NotEqual(t, first, await())
}

// forwardTCP is a balancer: each connection to one address is one to the other.
func forwardTCP(t *testing.T, from, to string) {
	l, err := net.Listen("tcp", from)
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { l.Close() })
	join := func(in net.Conn) {
		defer in.Close()
		out, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer out.Close()
		all.Go(func() { _, _ = io.Copy(in, out); in.Close() })
		_, _ = io.Copy(out, in)
	}
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(in) })
		}
	})
}

// forwardUDP is a balancer: the other address sees the packets of each sender from a port of its
// own, and what it answers goes back.
func forwardUDP(t *testing.T, from, to string) {
	l, err := net.ListenPacket("udp", from)
	require.NoError(t, err)
	senders := map[string]net.Conn{}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { l.Close() })
	answer := func(sender net.Addr, out net.Conn) {
		buf := make([]byte, 1<<16)
		for {
			n, err := out.Read(buf)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(buf[:n], sender)
		}
	}
	all.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, sender, err := l.ReadFrom(buf)
			if err != nil {
				for _, out := range senders {
					out.Close()
				}
				return
			}
			if senders[sender.String()] == nil {
				out, err := net.Dial("udp", to)
				if err != nil {
					continue
				}
				senders[sender.String()] = out
				all.Go(func() { answer(sender, out) })
			}
			_, _ = senders[sender.String()].Write(buf[:n])
		}
	})
}
