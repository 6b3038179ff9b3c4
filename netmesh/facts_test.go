package netmesh

import (
	"strings"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// told makes a node tell voters and a setting.
func told(c *Config) {
	c.Facts = Facts{Voters: []string{"a", "b"}, VoterCount: 2, Settings: []string{"lease", "2s"}}
}

func TestWhatPeersTellReachesTheObserver(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net, told, func(c *Config) { c.Meta = "http://" + string(c.Node) })
		time.Sleep(time.Second)
		for n, peer := range map[*node]string{a: "b", b: "a"} {
			require.True(t, n.observed(peer+` has the meta "http://`+peer+`"`))
			require.True(t, n.observed(peer+" tells [a b] 2 [lease 2s]"))
			require.True(t, n.observed(peer+" answers true"))
			require.False(t, n.observed("refused"))
		}
		require.NoError(t, b.Tell(Facts{Settings: []string{"mood", "idle"}}))
		require.ErrorContains(t, b.Tell(Facts{Settings: []string{"mood"}}), "1 words of settings")
		time.Sleep(a.cfg.times.ping + time.Second)
		require.True(t, a.observed("b tells [] 0 [mood idle]"))
		require.False(t, b.observed("a tells [] 0 [mood idle]"))
	})
}

func TestAnswersBeforeTheirPingsAreGarbage(t *testing.T) {
	for _, p := range []ping{{Number: 1, Received: 5, Sent: 4}, {Number: 1, Received: -5, Sent: 4}} {
		l := &link{m: &Mesh{cfg: testConfig("a").withDefaults()}, info: PeerInfo{Version: maxVersion}}
		l.meter.next(time.Now(), 0)
		require.Equal(t, ReasonGarbage, reasonOf(l.ponged(&p)))
	}
}

// A stranger's text reaches no terminal, log or environment unchanged.
func TestMetaOfAStrangerIsBoundedAndPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                        `""`,
		"\x00\x1b[2J\nmeta":       `"\\x00\\x1b[2J\\nmeta"`,
		strings.Repeat("x", 1500): `"` + strings.Repeat("x", MaxMeta) + `"`,
	} {
		a := start(t, "a", told)
		s := intrude(t, a)
		h := helloFrom(a)
		h.Meta = text
		s.link(h)
		a.sees(t, "x", "up 1")
		require.True(t, a.observed("x has the meta "+want), want)
	}
}

// olderHello is Hello without Meta.
type olderHello struct {
	Magic         string
	MinVersion    uint
	MaxVersion    uint
	Cluster       string
	Node          string
	Identity      []byte
	Boot          uint64
	Address       string
	To            string
	Dial          uint64
	Probe         bool
	Evidence      []byte
	Local, Remote string
	Process       uint64
}

func TestOlderBuildsHaveNoMetaAndSkipIt(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.Meta = "of a" })
	h := helloFrom(a)
	s := intrude(t, a)
	require.NoError(t, s.send(frameHello, &olderHello{
		Magic: h.Magic, MinVersion: h.MinVersion, MaxVersion: maxVersion, Cluster: h.Cluster,
		Node: h.Node, Identity: h.Identity, Boot: h.Boot, Address: h.Address, To: h.To, Dial: h.Dial,
	}))
	var theirs olderHello
	require.NoError(t, s.expect(frameWelcome, &theirs))
	require.Equal(t, a.number("x"), theirs.Process)
	require.NoError(t, s.send(frameJoin, &ping{}))
	a.sees(t, "x", "up 1")
	require.True(t, a.observed(`x has the meta ""`))
}

// Older builds accept no larger Hello.
func TestTheLongestHelloFits(t *testing.T) {
	name := strings.Repeat("n", MaxNameLength)
	address := strings.Repeat("a", 253) + ":65535"
	frame, err := newEncoder().encode(frameHello, &hello{
		Magic: magic, MinVersion: minVersion, MaxVersion: maxVersion, Cluster: name,
		Node: strings.Repeat("n", elector.MaxNameLength), Identity: make([]byte, 16), Boot: 1 << 63,
		Address: address, To: strings.Repeat("n", elector.MaxNameLength), Dial: 1 << 63,
		Evidence: make([]byte, 16), Local: strings.Repeat("l", maxAddress),
		Remote: strings.Repeat("r", maxAddress), Process: 1 << 63, Meta: strings.Repeat("m", MaxMeta),
		Commitment: make([]byte, 32), Proofs: make([]byte, (maxKeys+1)*proofSize),
	})
	require.NoError(t, err)
	require.LessOrEqual(t, len(frame)-frameHeader+1, maxHello)
}

func TestMetaThatPeersWouldChangeIsRefused(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", MaxMeta+1), "two\nlines", "\xff"} {
		c := testConfig("a")
		c.Meta = text
		require.ErrorContains(t, c.Validate(), "want printable text of at most 512 bytes")
	}
	c := testConfig("a")
	c.Meta = strings.Repeat("\u00e9", MaxMeta/2)
	require.NoError(t, c.Validate())
}
