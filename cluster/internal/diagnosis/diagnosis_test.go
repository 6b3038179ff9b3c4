package diagnosis

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

func quiet() *Diagnosis { return New(Config{Node: "me", Logger: hclog.NewNullLogger()}) }

func TestFindingsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, began := quiet(), time.Now()
		d.finds(findings.ClockRate, "b", "1")
		time.Sleep(5 * time.Second)
		d.finds(findings.ClockRate, "b", "2")
		d.report(findings.NameTwice, "b", "3")
		d.finds(findings.VotersDiffer, "a", "4")
		var all []string
		for _, f := range d.Findings() {
			require.NotEmpty(t, f.Advice)
			all = append(all, fmt.Sprint(f.Peer, " ", f.Kind, " ", f.Detail, " ", f.Since.Sub(began)))
		}
		require.Equal(t, []string{"a voters-differ 4 5s", "b clock-rate 2 0s", "b name-twice 3 5s"}, all,
			"sorted; since it began; the newest detail")
		time.Sleep(time.Minute)
		require.Len(t, d.Findings(), 3)
		time.Sleep(time.Nanosecond)
		require.Len(t, d.Findings(), 2,
			"a refusal that does not come again expires, what a link shows does not")
		d.finds(findings.VotersDiffer, "a", "")
		d.report(findings.NameTwice, "b", "5")
		d.Forget("b")
		require.Equal(t, findings.ClockRate, d.Findings()[0].Kind)
		watcher{nothing{}, d}.LinkDown("b", elector.EvidenceGoodbye)
		require.Empty(t, d.Findings())
	})
}

func TestWordsOfStrangersAreMadePrintable(t *testing.T) {
	d := quiet()
	d.report(findings.WrongCluster, "b\x1b"+elector.NodeID(strings.Repeat("n", 300)),
		"line\nbreak"+strings.Repeat("d", 1<<20))
	f := d.Findings()[0]
	require.True(t, strings.HasPrefix(string(f.Peer), `b\x1bn`) && len(f.Peer) <= netmesh.MaxNameLength,
		f.Peer)
	require.True(t, strings.HasPrefix(f.Detail, `line\nbreak`) && len(f.Detail) <= maxDetail)

	evil, w := "\x1b[31m\n", watcher{nothing{}, d}
	d.cfg.Voters, d.cfg.Settings = []elector.NodeID{"a"}, map[string]string{"lease": "2s"}
	w.Told("x", netmesh.Facts{
		Voters: []string{evil}, VoterCount: 1, VoterSum: []byte("?"), Settings: []string{"lease", evil},
	})
	require.Len(t, d.Findings(), 3)
	for _, f := range d.Findings() {
		require.NotContains(t, f.Detail, "\x1b", f.Kind)
		require.NotContains(t, f.Detail, "\n", f.Kind)
	}
}

// TestStrangersCannotHideFindings: a stranger who connects under many names displaces only
// findings about strangers.
func TestStrangersCannotHideFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := quiet()
		d.finds(findings.ClockRate, "b", "so")
		for i := range 10 * maxRefused {
			d.report(findings.WrongCluster, elector.NodeID(fmt.Sprint("x", i)), "so")
			time.Sleep(time.Nanosecond)
		}
		all := d.Findings()
		require.Len(t, all, 1+maxRefused)
		require.Equal(t, findings.ClockRate, all[0].Kind)
		require.Equal(t, elector.NodeID("x576"), all[1].Peer, "the newest are kept")
		for i := range 2 * maxFindings {
			d.finds(findings.ClockRate, elector.NodeID(fmt.Sprint("y", i)), "so")
		}
		require.Len(t, d.Findings(), maxFindings)
	})
}

func TestFindingsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := New(Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &out})})
		for range 5 {
			d.finds(findings.VotersDiffer, "b", "so")
			d.finds(findings.VotersDiffer, "b", "")
			d.report(findings.WrongCluster, elector.NodeID(fmt.Sprint(time.Now())), "so")
			time.Sleep(time.Second)
		}
		d.finds(findings.VotersDiffer, "c", "so")
		require.Equal(t, 2, strings.Count(out.String(), "reason=voters-differ"), out.String())
		require.Equal(t, 1, strings.Count(out.String(), "reason=wrong-cluster"),
			"strangers have many names")
		require.Contains(t, out.String(), "advice=")
		time.Sleep(time.Minute)
		d.finds(findings.VotersDiffer, "b", "so")
		require.Equal(t, 3, strings.Count(out.String(), "reason=voters-differ"))
	})
}

// A stranger who connects under many names with other voters does not fill the log.
func TestFindingsOfStrangersAreLoggedOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	d := New(Config{Voters: []elector.NodeID{"me", "b"}, Logger: hclog.New(&hclog.LoggerOptions{
		Output: &out})})
	for i := range 100 {
		d.finds(findings.VotersDiffer, elector.NodeID(fmt.Sprint("guest", i)), "so")
	}
	d.finds(findings.VotersDiffer, "b", "so")
	require.Equal(t, 2, strings.Count(out.String(), "reason=voters-differ"), out.String())
	require.Contains(t, out.String(), "peer=b ")
}

func TestOfListsThatWereCutNothingIsClaimed(t *testing.T) {
	var long []elector.NodeID
	for i := range 60 {
		long = append(long, elector.NodeID(fmt.Sprintf("n%02d-%s", i, strings.Repeat("x", 60))))
	}
	facts := func(voters []elector.NodeID) *netmesh.Facts {
		f := New(Config{Voters: voters}).Facts("")
		return &f
	}
	say := func(mine, theirs []elector.NodeID) string {
		return votersDiffer("me", "it", facts(mine), facts(theirs))
	}
	require.Empty(t, say(long, long))
	require.Contains(t, say(long, long[:59]), "beyond the first",
		"both were cut before the difference")
	require.Contains(t, say(long[:59], long), `"me" (59) and "it" (60)`)
	text := say(long, long[1:])
	require.Contains(t, text, `only node "me" counts "n00-`)
	require.NotContains(t, text, `only node "it"`)
	text = say(long[:1], long)
	require.Contains(t, text, `only node "it" counts "n01-`)
	require.NotContains(t, text, `only node "me"`)
	require.Contains(t, say([]elector.NodeID{"zz"}, long), `only node "it" counts`)
	require.NotContains(t, say([]elector.NodeID{"zz"}, long), `"zz"`,
		"zz may be among those that were cut")
	require.Contains(t, quoted(strings.Split(strings.Repeat("v", 15), "")), "and 3 more")
	require.Empty(t, say(nil, long), "who tells none is not compared")
	require.NotEqual(t, facts([]elector.NodeID{"ab", "c"}).VoterSum,
		facts([]elector.NodeID{"a", "bc"}).VoterSum)
}

func TestEveryKindHasAdvice(t *testing.T) {
	for _, k := range findings.Kinds() {
		require.NotEmpty(t, k.Advice(), k)
	}
	require.Empty(t, findings.Kind("of tomorrow").Advice())
}
