package gossip

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func valid() Config {
	return Config{Cluster: "test", Node: "a", Bind: "127.0.0.1:0", Timing: fast()}
}

func TestStartRefusesMetadataThatDoesNotFit(t *testing.T) {
	cfg := valid()
	cfg.Meta.Version = strings.Repeat("v", 600)
	_, err := Start(cfg)
	require.ErrorContains(t, err,
		"at most 512 fit: shorten MeshAddr (0 bytes), AdminAddr (0) or Version (600)")
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

// onlyLiterals resolves IP addresses only, without the name service.
func onlyLiterals(ctx context.Context, hostport string) ([]netip.AddrPort, error) {
	if _, err := netip.ParseAddrPort(hostport); err != nil {
		return nil, fmt.Errorf("no such name: %q", hostport)
	}
	return resolve(ctx, hostport)
}

var full = Meta{
	MeshAddr: "[2001:db8::1]:65535", AdminAddr: "h:1", Version: "v1.2.3-x",
	Voter: true,
}

// Nodes of different versions read each other's metadata. Older ones also send candidacy and
// priority.
func TestMetadataIsWhatItWasOnTheWire(t *testing.T) {
	b, err := encodeMeta(wireMeta{full, true})
	require.NoError(t, err)
	require.Equal(t, "\x01\x85\xa1a\xa3h:1\xa1l\xc3\xa1m\xb3[2001:db8::1]:65535"+
		"\xa1o\xc3\xa1v\xa8v1.2.3-x", string(b))
	old, err := decodeMeta([]byte("\x01\x87\xa1a\xa3h:1\xa1c\xc3\xa1l\xc3\xa1m\xb3[2001:db8::1]:65535" +
		"\xa1o\xc3\xa1p\xd3\xc0\x00\x00\x00\x00\x00\x00\x00\xa1v\xa8v1.2.3-x"))
	require.NoError(t, err)
	require.Equal(t, wireMeta{full, true}, old)
}

func TestMetaRoundTrip(t *testing.T) {
	for _, w := range []wireMeta{
		{},
		{Meta: full},
		{Meta{Version: "v2"}, true},
	} {
		b, err := encodeMeta(w)
		require.NoError(t, err)
		got, err := decodeMeta(b)
		require.NoError(t, err)
		require.Equal(t, w, got)
	}
}

func TestMetaSizeIsCheckedAtTheByte(t *testing.T) {
	w := wireMeta{Meta: Meta{Version: strings.Repeat("v", 400)}}
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
	good, err := encodeMeta(wireMeta{Meta: Meta{MeshAddr: "a:1", Voter: true}})
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

func TestABoundedNumberOfTheGoneIsRemembered(t *testing.T) {
	ms := newMembers(&Config{}, hclog.NewNullLogger())
	for i := range maxGone + 10 {
		ms.put(Member{Node: elector.NodeID(fmt.Sprint(i)), GossipAddr: fmt.Sprint("addr", i),
			State: StateDead})
	}
	alive, lost := ms.addresses()
	require.Empty(t, alive)
	require.Len(t, lost, maxGone)
	require.Empty(t, ms.nodeAt("addr0"), "the oldest is forgotten")
	require.Equal(t, elector.NodeID("137"), ms.nodeAt("addr137"))
}
