package netmesh

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

func TestConfigNamesEveryProblem(t *testing.T) {
	longest := elector.NodeID(strings.Repeat("n", elector.MaxNameLength))
	require.NoError(t, testConfig(longest).Validate())
	require.ErrorContains(t, testConfig(longest+"n").Validate(),
		"129 bytes long, and the limit is 128")
	err := Config{
		Cluster: strings.Repeat("c", 256), Node: "*", Bind: "nowhere", Advertise: "x", Inactivity: -1,
		Facts: Facts{Settings: []string{"lease"}},
	}.Validate()
	for _, field := range []string{
		"Cluster: 256 bytes", "Node: \"*\"", "Identity: zero", "Boot: 0", "Bind: \"nowhere\"",
		"Advertise: \"x\"", "Inactivity: -1ns", "Facts: 1 words of settings",
	} {
		require.ErrorContains(t, err, field)
	}
	_, err = Listen(Config{}, &recorder{})
	require.ErrorContains(t, err, `Node: "": the name is empty`)
	_, err = Listen(testConfig("a"), nil)
	require.ErrorContains(t, err, "no handler")
}

func TestListenSaysWhereItFailed(t *testing.T) {
	a := start(t, "a")
	cfg := testConfig("b")
	cfg.Bind = a.Addr().String()
	_, err := Listen(cfg, &recorder{})
	require.ErrorContains(t, err, "listen on "+cfg.Bind)
}

func TestAdvertisedAddress(t *testing.T) {
	for _, c := range []struct{ bind, advertise, listener, want string }{
		{"127.0.0.1:0", "", "127.0.0.1:4711", "127.0.0.1:4711"},
		{":7000", "", "[::]:7000", ":7000"},
		{"0.0.0.0:0", "", "0.0.0.0:81", "0.0.0.0:81"},
		{"10.0.0.1:1", "public:2", "10.0.0.1:1", "public:2"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.listener)
		require.NoError(t, err)
		require.Equal(t, c.want, Config{Bind: c.bind, Advertise: c.advertise}.advertised(addr))
	}
	remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 55555}
	for address, want := range map[string]string{
		":7000": "10.0.0.9:7000", "0.0.0.0:7000": "10.0.0.9:7000", "[::]:7000": "10.0.0.9:7000",
		"10.0.0.8:7000": "10.0.0.8:7000", "host:7000": "host:7000", "nonsense": "",
	} {
		require.Equal(t, want, reachable(address, remote), address)
	}
}

func TestCloseIsIdempotentAndRefusesLater(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	b.knows(a)
	a.sees(t, "b", "up 1")
	addr := a.Addr().String()
	a.close(t)
	a.close(t)
	a.knows(b)
	require.False(t, a.Links()[0].Up)
	require.False(t, a.Send("b", "g", ack(1)))
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
	require.Equal(t, []string{"up 1", "down local"}, a.all("b"))
}

// TestCloseIsBounded: a handler that never returns delays neither Close nor the goodbye.
func TestCloseIsBounded(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := startWith(t, "a", &recorder{slow: "b", release: make(chan struct{})}, onHost(net))
		b := start(t, "b", onHost(net))
		b.AddPeer("a", a.cfg.Bind)
		time.Sleep(time.Second)
		require.True(t, b.Send("a", "g", ack(1)))
		synctest.Wait() // the handler has it
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, a.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		require.Equal(t, []string{"up 1", "down goodbye"}, b.all("a"))
		close(a.release)
		a.close(t)
	})
}

// TestSlowHandlerHoldsUpItsOwnLinkAlone: messages of the others arrive.
func TestSlowHandlerHoldsUpItsOwnLinkAlone(t *testing.T) {
	a := startWith(t, "a", &recorder{slow: "b", release: make(chan struct{})})
	b, c := start(t, "b"), start(t, "c")
	b.knows(a)
	c.knows(a)
	a.sees(t, "b", "up 1")
	a.sees(t, "c", "up 1")
	b.sees(t, "a", "up 1")
	c.sees(t, "a", "up 1")
	require.True(t, b.Send("a", "g", ack(1)))
	require.True(t, c.Send("a", "g", ack(2)))
	a.sees(t, "c", "g HeartbeatAck 2")
	require.Zero(t, a.count("b", "g HeartbeatAck 1"))
	close(a.release)
	a.sees(t, "b", "g HeartbeatAck 1")
}

func TestDisconnectSaysWhyAndPausesBeforeTheRedial(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net)
		time.Sleep(time.Second)
		a.Disconnect("b", "absurd term 2^64-1")
		a.Disconnect("stranger", "nobody")
		synctest.Wait()
		require.Equal(t, []string{"up 1", "down local"}, a.all("b"))
		require.Equal(t, []string{"up 1", "down goodbye"}, b.all("a"))
		require.Contains(t, b.Links()[0].LastErr, "absurd term 2^64-1")
		require.False(t, b.Links()[0].Up)
		time.Sleep(time.Second)
		require.Equal(t, 2, a.count("b", "up 1"))
	})
}

func TestAddressOfAPeerCanChange(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.AddPeer("b", "127.0.0.1:1")
	a.AddPeer("a", b.Addr().String()) // itself: ignored
	a.AddPeer("b", "")                // likewise
	a.fails(t, "refused")
	a.knows(b)
	a.sees(t, "b", "up 1")
	require.Len(t, a.Links(), 1)
}

func TestConnectionToOneselfIsRecognised(t *testing.T) {
	plainOnly(t)
	a := start(t, "a")
	a.AddPeer("b", a.Addr().String())
	a.counts(t, ReasonSelf)
	require.Empty(t, a.all("b"))
	require.Empty(t, a.all("a"))
}

// Strangers with many addresses do not fill the log, and do not hide what a member does.
func TestRefusalsAreBoundedInAll(t *testing.T) {
	var out bytes.Buffer
	a := start(t, "a", logs(&out))
	for i := range 10 * maxRefusals {
		a.log.warn("garbage", fmt.Sprint("host", i), connectionRefused)
	}
	a.log.warn("garbage", "b", "closing the link")
	a.log.warn(ReasonCopied.String(), "10.0.0.2", connectionRefused)
	a.close(t)
	require.Equal(t, maxRefusals+1, strings.Count(out.String(), connectionRefused))
	require.Contains(t, out.String(), "closing the link")
	require.Contains(t, out.String(), "[ERROR] connection refused")
}

func TestTimesFollowTheElection(t *testing.T) {
	const ms = time.Millisecond
	for inactivity, want := range map[time.Duration]times{
		0: {idle: 3000 * ms, ping: 1000 * ms, dial: 2000 * ms, redialMax: 2000 * ms,
			redialMin: 50 * ms, handshake: 2000 * ms, handshakeMost: 2000 * ms},
		20 * 1000 * ms: {idle: 3000 * ms, ping: 1000 * ms, dial: 2000 * ms, redialMax: 2000 * ms,
			redialMin: 50 * ms, handshake: 2000 * ms, handshakeMost: 2000 * ms},
		1500 * ms: {idle: 3000 * ms, ping: 1000 * ms, dial: 750 * ms, redialMax: 750 * ms,
			redialMin: 50 * ms, handshake: 1500 * ms, handshakeMost: 2000 * ms},
		100 * ms: {idle: 200 * ms, ping: 200 * ms / 3, dial: 50 * ms, redialMax: 50 * ms,
			redialMin: 5 * ms, handshake: 100 * ms, handshakeMost: 2000 * ms},
		3 * ms: {idle: 100 * ms, ping: 100 * ms / 3, dial: 50 * ms, redialMax: 10 * ms,
			redialMin: ms, handshake: 100 * ms, handshakeMost: 2000 * ms},
	} {
		require.Equal(t, want, Config{Inactivity: inactivity}.derivedTimes(), inactivity)
	}
}

// callsBack is the log of a program that calls the mesh while it writes.
type callsBack struct{ ask atomic.Pointer[func()] }

func (c *callsBack) Write(b []byte) (int, error) {
	if ask := c.ask.Swap(nil); ask != nil {
		(*ask)()
	}
	return len(b), nil
}

// TestForgetHoldsUpNobodyByItsLog: a logger that blocks must not stop the heartbeats.
func TestForgetHoldsUpNobodyByItsLog(t *testing.T) {
	out := &callsBack{}
	a := start(t, "a", logs(out))
	b := start(t, "b")
	b.knows(a)
	a.sees(t, "b", "up 1")
	b.close(t)
	a.sees(t, "b", "down goodbye")
	held := false
	ask := func() {
		sent := make(chan bool)
		go func() { sent <- a.Send("b", "g", heartbeat(1)) }()
		select {
		case <-sent:
		case <-time.After(time.Second):
			held = true
			go func() { <-sent }()
		}
	}
	out.ask.Store(&ask)
	require.NoError(t, a.Forget("b", 0))
	require.Nil(t, out.ask.Load(), "it says so")
	require.False(t, held)
}
