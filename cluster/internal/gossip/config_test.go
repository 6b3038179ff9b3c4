package gossip

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func valid() Config {
	return Config{Cluster: "test", Node: "a", Bind: "127.0.0.1:0", Timing: fast()}
}

func TestStartNamesEveryProblem(t *testing.T) {
	cfg := valid()
	cfg.Cluster = strings.Repeat("c", 256)
	cfg.Node = ""
	cfg.Bind = "127.0.0.1"
	cfg.Advertise = ":7946"
	cfg.Join = []string{"good:1", "bad:port", "zero:0"}
	cfg.Meta.Version = strings.Repeat("v", 600)
	cfg.Timing.Probe = -1
	_, err := Start(cfg)
	for _, part := range []string{
		"Cluster", "256 bytes", `Node ""`, `Bind "127.0.0.1" is not host:port`, `Advertise ":7946" names no host`,
		`Join[1] "bad:port"`, `Join[2] "zero:0"`, "at most 512 fit", "Timing.Probe is -1ns",
	} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "good:1")
}

func TestStartSaysWhyItCannotBind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for _, c := range []struct{ bind, advertise, want string }{
		{taken.Addr().String(), "", "another process listens there"},
		{"192.0.2.1:0", "", "no interface of this machine has that address"},
		{"[::]:0", "", "advertise another"},
		{"[fe80::1%nowhere]:0", "", "has a zone"},
		{"127.0.0.1:0", "0.0.0.0:1", "name one interface"},
		{"127.0.0.1:0", "no-such-host:1", `Advertise: no such name: "no-such-host:1"`},
		{"no-such-host:1", "", `Bind: no such name: "no-such-host:1"`},
	} {
		t.Run(c.bind+" "+c.advertise, func(t *testing.T) {
			cfg := valid()
			cfg.Bind, cfg.Advertise = c.bind, c.advertise
			cfg.resolve = onlyLiterals
			_, err := Start(cfg)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `node "a"`)
		})
	}
}

// onlyLiterals keeps a test away from the name service.
func onlyLiterals(ctx context.Context, hostport string) ([]netip.AddrPort, error) {
	if _, err := netip.ParseAddrPort(hostport); err != nil {
		return nil, fmt.Errorf("no such name: %q", hostport)
	}
	return resolve(ctx, hostport)
}

func TestLocalhostIsResolved(t *testing.T) {
	a := start(t, "a", bound("localhost:0"))
	require.True(t, netip.MustParseAddrPort(a.gossipAddr()).Addr().IsLoopback())
}

func TestMetaRoundTrip(t *testing.T) {
	for _, w := range []wireMeta{
		{},
		{MeshAddr: "[2001:db8::1]:65535", AdminAddr: "h:1", Version: "v1.2.3-x", Voter: true, Candidate: true, Priority: -1 << 62},
		{Leaving: true, Priority: 1 << 62},
	} {
		b, err := encodeMeta(w)
		require.NoError(t, err)
		got, err := decodeMeta(b)
		require.NoError(t, err)
		require.Equal(t, w, got)
	}
}

func TestMetaSizeIsCheckedAtTheByte(t *testing.T) {
	w := wireMeta{Version: strings.Repeat("v", 400)}
	b, err := encodeMeta(w)
	require.NoError(t, err)
	w.Version += strings.Repeat("v", memberlist.MetaMaxSize-len(b))
	b, err = encodeMeta(w)
	require.NoError(t, err)
	require.Len(t, b, memberlist.MetaMaxSize)
	w.Version += "v"
	_, err = encodeMeta(w)
	require.ErrorContains(t, err, "513 bytes")
}

func TestUpdateMetaThatDoesNotFitChangesNothing(t *testing.T) {
	a := start(t, "a")
	before := a.Local()
	require.ErrorContains(t, a.UpdateMeta(Meta{MeshAddr: strings.Repeat("m", 600)}), "shorten MeshAddr (600 bytes)")
	require.Equal(t, before, a.Local())
	most := 0
	for n := range memberlist.MetaMaxSize {
		if a.UpdateMeta(Meta{Version: strings.Repeat("v", n)}) == nil {
			most = n
		}
	}
	require.Greater(t, most, 400)
	require.NoError(t, a.Leave(within(t, patience)), "the largest metadata still leaves room for a goodbye")
}

func TestUnreadableMetaIsRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": nil, "format": {9, 0x80}, "truncated": {metaFormat, 0x81}, "no map": {metaFormat, 0xc1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeMeta(b)
			require.ErrorContains(t, err, "decode node metadata")
		})
	}
}

func FuzzDecodeMeta(f *testing.F) {
	good, err := encodeMeta(wireMeta{MeshAddr: "a:1", Voter: true, Priority: 3})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte{metaFormat, 0x81})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := decodeMeta(b)
		if err != nil || len(b) > memberlist.MetaMaxSize {
			return
		}
		again, err := encodeMeta(w)
		require.NoError(t, err)
		got, err := decodeMeta(again)
		require.NoError(t, err)
		require.Equal(t, w, got)
	})
}

func TestTableRemembersABoundedNumberOfTheGone(t *testing.T) {
	members := newTable()
	for i := range maxGone + 10 {
		members.put(Member{Node: elector.NodeID(fmt.Sprint(i)), GossipAddr: fmt.Sprint("addr", i), State: StateDead})
	}
	require.Len(t, members.list(), maxGone)
	require.Len(t, members.lost(), maxGone)
	require.Empty(t, members.nodeAt("addr0"), "the oldest is forgotten")
	require.Equal(t, elector.NodeID("137"), members.nodeAt("addr137"))
}

func TestNamesOfStatesAndKinds(t *testing.T) {
	require.Equal(t, "alive left dead", fmt.Sprint(StateAlive, StateLeft, StateDead))
	require.Equal(t, "joined updated left failed conflict", fmt.Sprint(Joined, Updated, Left, Failed, Conflict))
	require.Equal(t, "invalid(0) invalid(6)", fmt.Sprint(State(0), EventKind(6)))
}
