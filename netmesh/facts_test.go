package netmesh

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// told makes a node tell voters and a setting.
func told(c *Config) {
	c.Facts = Facts{Voters: []string{"a", "b"}, VoterCount: 2, Settings: []string{"lease", "2s"}}
}

func TestWhatPeersTellReachesTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New(), told)
		time.Sleep(time.Second)
		for n, peer := range map[*node]string{a: "b", b: "a"} {
			require.True(t, n.observed(peer+" tells [a b] 2 [lease 2s]"))
			require.True(t, n.observed(peer+" answers true"))
			require.False(t, n.observed("refused"))
		}
	})
}

func TestWhatIsToldAnewReachesTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New(), told)
		time.Sleep(time.Second)
		require.NoError(t, b.Tell(Facts{Settings: []string{"mood", "idle"}}))
		require.ErrorContains(t, b.Tell(Facts{Settings: []string{"mood"}}), "1 words of settings")
		time.Sleep(a.cfg.times.ping + time.Second)
		require.True(t, a.observed("b tells [] 0 [mood idle]"))
		require.False(t, b.observed("a tells [] 0 [mood idle]"))
	})
}

// TestHostileFacts: a member that tells nonsense loses its link, and nothing else happens.
func TestHostileFacts(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, f := range map[string]*Facts{
		"unsorted":         {Voters: []string{"b", "a"}, VoterCount: 2},
		"more than all":    {Voters: []string{"a", "b"}, VoterCount: 1},
		"endless voter":    {Voters: []string{long}, VoterCount: 1},
		"half a setting":   {Settings: []string{"lease"}},
		"many settings":    {Settings: make([]string, 2*maxSettings+2)},
		"endless setting":  {Settings: []string{"lease", long}},
		"not even a value": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "a", told)
			s := intrude(t, a)
			h := helloFrom(a)
			h.MaxVersion = maxVersion
			s.link(h)
			a.sees(t, "x", "up 1")
			if f == nil {
				s.write(0, 0, 0, 2, byte(frameFacts), 0xa1)
			} else {
				require.NoError(t, s.send(frameFacts, f))
			}
			a.counts(t, ReasonGarbage)
			s.isClosed()
			a.sees(t, "x", "down local")
			require.False(t, a.observed("x tells"))
		})
	}
}

func TestAnswersBeforeTheirPingsAreGarbage(t *testing.T) {
	for _, p := range []ping{{Number: 1, Received: 5, Sent: 4}, {Number: 1, Received: -5, Sent: 4}} {
		l := &link{m: &Mesh{cfg: testConfig("a").withDefaults()}, info: PeerInfo{Version: maxVersion}}
		l.meter.next(time.Now(), 0)
		require.Equal(t, ReasonGarbage, reasonOf(l.ponged(&p)))
	}
}
