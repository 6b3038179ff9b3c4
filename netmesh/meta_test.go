package netmesh

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

func TestBothEndsLearnTheMetaWithTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New(), func(c *Config) { c.Meta = "http://" + string(c.Node) })
		time.Sleep(time.Second)
		require.True(t, a.observed(`b has the meta "http://b"`))
		require.True(t, b.observed(`a has the meta "http://a"`))
	})
}

// A stranger's text reaches no terminal, log or environment as it is.
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

// Older builds take no larger Hello.
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
