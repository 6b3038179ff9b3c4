package netmesh

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/memnet"
	"github.com/stretchr/testify/require"
)

func voters(names ...elector.NodeID) func(*Config) { return func(c *Config) { c.Voters = names } }

func agree(pairs ...string) func(*Config) {
	return func(c *Config) {
		c.Agree = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			c.Agree[pairs[i]] = pairs[i+1]
		}
	}
}

// pairOn starts two nodes on a network in memory, of which a dials b.
func pairOn(t *testing.T, net *memnet.Network, ofA, ofB []func(*Config)) (a, b *node) {
	a, b = start(t, "a", append(ofA, onHost(net))...), start(t, "b", append(ofB, onHost(net))...)
	a.AddPeer("b", "b:7000")
	synctest.Wait()
	return a, b
}

func TestVotersThatDifferAreNamedOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := pairOn(t, net, []func(*Config){voters("c", "a", "b")}, []func(*Config){voters("a", "b", "d", "e")})
		for _, n := range []*node{a, b} {
			other := map[elector.NodeID]elector.NodeID{"a": "b", "b": "a"}[n.cfg.Node]
			n.mustFind(t, FindingVotersDiffer, other, `only node "a" counts "c"`, `only node "b" counts "d", "e"`)
			require.Equal(t, LinkIsUp, n.Links()[0].State, "a change of voters passes through this")
		}
		since := a.Findings()[0].Since
		time.Sleep(time.Hour)
		require.Equal(t, since, a.Findings()[0].Since)

		b.close(t)
		synctest.Wait()
		require.Empty(t, a.Findings(), "of a node that is gone nothing is known")
		b = start(t, "b", onHost(net), boot(2), voters("b", "a", "c"))
		time.Sleep(time.Minute)
		require.Equal(t, 1, a.count("b", "up 2"))
		require.Empty(t, append(a.Findings(), b.Findings()...), "the order is no difference")
	})
}

func TestSettingsThatDifferAreNamedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New(),
			[]func(*Config){agree("lease", "2s", "quorum", "2", "drift", "1%", "only a", "x")},
			[]func(*Config){agree("lease", "3s", "quorum", "2", "drift", "1 %\n", "only b", "x")})
		for n, peer := range map[*node]elector.NodeID{a: "b", b: "a"} {
			f := n.mustFind(t, FindingSettingsDiffer, peer, `lease is "`, `"2s" on node "a"`, `"3s" on node "b"`, `"1 %\n" on node "b"`)
			require.NotContains(t, f.Detail, "quorum")
			require.NotContains(t, f.Detail, "only", "a newer build may know more settings")
		}
	})
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := func(c *Config) {
			voters("a", "b")(c)
			agree("lease", "2s")(c)
			c.MaxDriftPPM = 1
		}
		a, b := pairOn(t, memnet.New(), []func(*Config){all}, []func(*Config){all})
		time.Sleep(time.Hour)
		require.Empty(t, append(a.Findings(), b.Findings()...))
		require.Empty(t, a.Counters())
		require.Empty(t, b.Counters())
	})
}

func TestOfListsThatWereCutNothingIsClaimed(t *testing.T) {
	var long []elector.NodeID
	for i := range 60 {
		long = append(long, elector.NodeID(fmt.Sprintf("n%02d-%s", i, strings.Repeat("x", 60))))
	}
	m := &Mesh{cfg: Config{Node: "me"}}
	say := func(mine, theirs []elector.NodeID) string {
		a, b := ownFacts(Config{Voters: mine}), ownFacts(Config{Voters: theirs})
		require.NoError(t, a.check())
		return m.votersDiffer("it", &a, &b)
	}
	require.Empty(t, say(long, long))
	require.Contains(t, say(long, long[:59]), "beyond the first", "both were cut before the difference")
	require.Contains(t, say(long[:59], long), `"me" (59) and "it" (60)`)
	text := say(long, long[1:])
	require.Contains(t, text, `only node "me" counts "n00-`)
	require.NotContains(t, text, `only node "it"`)
	text = say(long[:1], long)
	require.Contains(t, text, `only node "it" counts "n01-`)
	require.NotContains(t, text, `only node "me"`)
	require.Contains(t, say([]elector.NodeID{"zz"}, long), `only node "it" counts`)
	require.NotContains(t, say([]elector.NodeID{"zz"}, long), `"zz"`, "zz may be among those that were cut")
	require.Contains(t, quoted(strings.Split(strings.Repeat("v", 15), "")), "and 3 more")
	require.Empty(t, say(nil, long), "who tells none is not compared")
	require.NotEqual(t, fingerprint([]string{"ab", "c"}), fingerprint([]string{"a", "bc"}))
}

// TestFactsFitTheSmallestFrame: the peer's MaxFrame is not known.
func TestFactsFitTheSmallestFrame(t *testing.T) {
	c := testConfig("a")
	for i := range 1000 {
		c.Voters = append(c.Voters, elector.NodeID(fmt.Sprintf("%03d", i)))
	}
	c.Agree = map[string]string{}
	for i := range maxSettings {
		c.Agree[fmt.Sprintf("%0*d", maxSettingKey, i)] = strings.Repeat("v", maxSettingValue)
	}
	require.NoError(t, c.Validate())
	f, text := ownFacts(c), strings.Repeat("t", maxFactText)
	f.Local, f.Remote, f.Dialed, f.Unreachable = text, text, text, clip(text+text)
	require.NoError(t, f.check())
	frame, err := newEncoder().encode(frameFacts, &f)
	require.NoError(t, err)
	require.LessOrEqual(t, len(frame), MinMaxFrame)
}

// TestHostileFacts: a member that tells nonsense loses its link, and nothing else happens.
func TestHostileFacts(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, f := range map[string]*facts{
		"unsorted":         {Voters: []string{"b", "a"}, VoterCount: 2},
		"more than all":    {Voters: []string{"a", "b"}, VoterCount: 1},
		"endless voter":    {Voters: []string{long}, VoterCount: 1},
		"half a setting":   {Settings: []string{"lease"}},
		"many settings":    {Settings: make([]string, 2*maxSettings+2)},
		"endless setting":  {Settings: []string{"lease", long}},
		"endless address":  {Local: long},
		"endless cause":    {Unreachable: long, Dialed: "here"},
		"not even a value": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "a", voters("a", "b"), agree("lease", "2s"))
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
			require.Empty(t, a.Findings())
		})
	}
}

func TestHostileTextInFactsIsMadePrintable(t *testing.T) {
	a := start(t, "a", voters("a"), agree("lease", "2s"))
	s := intrude(t, a)
	h := helloFrom(a)
	h.MaxVersion, h.Address = maxVersion, a.Addr().String() // leads to another node
	s.link(h)
	evil := "\x1b[31m\n"
	require.NoError(t, s.send(frameFacts, &facts{
		Voters: []string{evil}, VoterCount: 1, VoterSum: []byte("?"), Settings: []string{"lease", evil},
		Local: "1.2.3.4:5", Remote: "1.2.3.4:6%" + evil, Unreachable: evil,
	}))
	a.comesToFind(t, FindingAdvertiseUnreachable, "x")
	require.GreaterOrEqual(t, len(a.Findings()), 4)
	for _, f := range a.Findings() {
		require.NotContains(t, f.Detail, "\x1b", f.Kind)
		require.NotContains(t, f.Detail, "\n", f.Kind)
	}
}

// TestPeersOfTheFirstVersion get nothing that they do not know, and miss nothing.
func TestPeersOfTheFirstVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, "a", onHost(memnet.New()), voters("a", "b"), agree("lease", "2s"), func(c *Config) { c.MaxDriftPPM = 1 })
		conn, err := a.cfg.Network.Dial(t.Context(), "a:7000")
		require.NoError(t, err)
		s := &stranger{newGreeting(conn, time.Hour), t}
		s.link(helloFrom(a))
		for pings := 0; pings < 40; {
			kind, body, err := s.frames.next()
			require.NoError(t, err)
			require.Equal(t, framePing, kind)
			var p struct{ Number uint64 }
			require.NoError(t, s.dec.one(body, &p), "what was appended is skipped")
			require.NoError(t, s.send(framePong, &p))
			pings++
		}
		synctest.Wait()
		require.EqualValues(t, 1, a.Links()[0].Peer.Version)
		require.Zero(t, a.Links()[0].Loss)
		require.Zero(t, a.Links()[0].WallClock)
		require.Empty(t, a.Findings())
		require.NoError(t, conn.Close())
	})
}
