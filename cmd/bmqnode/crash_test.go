package main_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

func TestKilledLeaderIsReplacedAndComesBackAsAFollower(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 5)

	require.NoError(t, s.node(first.Leader).Kill())
	second := s.agree(s.others(first.Leader), above(first.Term))
	require.NotEqual(t, first.Leader, second.Leader)

	require.NoError(t, s.node(first.Leader).Start())
	s.agree(s.Nodes(), same(second))
}

func TestStoppedLeaderHandsOverBeforeItExits(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.node(first.Leader).Stop(ctx))
	require.NoError(t, s.exit(s.node(first.Leader)), "SIGTERM is a clean exit")
	s.eventually("a follower hears who is to be next", func() bool {
		return len(s.transitions(func(e admin.Event) bool { return e.Reason == "TRANSFERRED" })) > 0
	})
	second := s.agree(s.others(first.Leader), above(first.Term))
	require.NotEqual(t, first.Leader, second.Leader)
}

func TestPausedLeaderNeverClaimsToLeadAfterItWakes(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 3)
	old := s.node(first.Leader)

	require.NoError(t, old.Signal(syscall.SIGSTOP))
	second := s.agree(s.others(first.Leader), above(first.Term))

	// The questions wait in the sleeper's sockets: they are the first that it
	// hears when it wakes, before any heartbeat of the new leader.
	const questions = 20
	answers := make(chan cluster.Status, questions)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range questions {
		go func() {
			st, err := old.Client().Status(ctx)
			if err != nil {
				st = cluster.Status{Failure: err.Error()}
			}
			answers <- st
		}()
	}
	require.NoError(t, old.Signal(syscall.SIGCONT))
	for range questions {
		st := <-answers
		require.Empty(t, st.Failure)
		require.False(t, st.Groups[0].Leading, "it said that it leads: %+v", st.Groups[0])
	}
	s.agree(s.Nodes(), same(second))
}

func TestFollowersRestartInTurnUnderALeaderThatStays(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 5)
	for i, n := range s.others(first.Leader) {
		if i%2 == 0 {
			require.NoError(t, n.Kill())
		} else {
			s.stop(n)
		}
		require.NoError(t, n.Start())
		s.agree(s.Nodes(), same(first))
	}
	require.Empty(t, s.transitions(lostLeadership))
}

func TestSingleVoterLeadsAtOnceAndAfterEveryRestart(t *testing.T) {
	t.Parallel()
	s := play(t, 1, nil)
	var last cluster.GroupStatus
	for range 3 {
		g := s.agree(s.Nodes(), above(last.Term))
		last = g
		require.NoError(t, s.Nodes()[0].Kill())
		require.NoError(t, s.Nodes()[0].Start())
	}
}

// A process whose disk fails must stop voting, say why, and exit non-zero. A
// limit of zero on the size of files makes every write of the running process fail.
func TestNodeWhoseDiskFailsStopsTakingPart(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 3)
	victim := s.others(first.Leader)[0]
	failWrites(t, victim.Pid())

	// A vote needs no write as long as terms are reserved; a pause needs one.
	_, err := victim.Client().Tell(t.Context(), admin.PauseRequest{For: "1m"})
	require.Error(t, err)
	require.Error(t, s.exit(victim), "it exits non-zero")
	s.mu.Lock()
	defer s.mu.Unlock()
	var said bool
	for _, l := range s.lines {
		said = said || l.Node == victim.Name && l.Level == "error" &&
			l.Message == "this node takes no part any more"
	}
	require.True(t, said, "it says why")
}

// invent tells a node of members that do not exist, as anybody can who reaches its port
// for gossip.
func invent(t *testing.T, n *procs.Node, count int) {
	conn, err := net.Dial("udp", n.GossipAddr)
	require.NoError(t, err)
	defer conn.Close()
	handle := &codec.MsgpackHandle{WriteExt: true}
	for i := range count {
		var meta []byte
		require.NoError(t, codec.NewEncoderBytes(&meta,
			handle).Encode(map[string]string{"m": "127.0.0.1:9"}))
		var body []byte
		require.NoError(t, codec.NewEncoderBytes(&body, handle).Encode(map[string]any{
			"Incarnation": 1, "Node": fmt.Sprint("unreal", i), "Addr": []byte{127, 0, 0, 1},
			"Port": 20_000 + i,
			"Meta": append([]byte{1}, meta...), "Vsn": []byte{1, 5, 5, 0, 0, 0},
		}))
		const labelled, alive = 244, 4
		packet := append([]byte{labelled, byte(len(cluster.DefaultCluster))}, cluster.DefaultCluster...)
		_, err = conn.Write(append(append(packet, alive), body...))
		require.NoError(t, err)
		time.Sleep(time.Millisecond) // UDP drops what comes too fast
	}
}

// A full disk is found before it costs anything: the status, the doctor and the metric tell, and
// elections go on. When there is room again, they tell no more.
func TestAFullDiskIsFoundAndElectionsGoOn(t *testing.T) {
	t.Parallel()
	s := layOut(t, 3, quick())
	victim := s.Nodes()[0]
	mountSmall(t, victim.Dir+"/state", "2m")
	require.NoError(t, s.Start())
	g := s.agree(s.Nodes(), nil)
	filler := victim.Dir + "/state/filler"
	fill(t, filler)
	found := s.tells([]string{"disk-fails"}, "--admin", victim.AdminAddr)["disk-fails"]
	require.Len(t, found, 1)
	require.Contains(t, found[0].What, "no space left on device")
	require.Equal(t, "docs/errors.md#disk-fails", found[0].See)
	out, _, _ := bmqnode(t, "status", "--admin", victim.AdminAddr)
	require.Contains(t, out, "disk-fails")
	figures, err := victim.Client().Figures(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 1, figures.Values[`bmqelect_findings{kind="disk-fails"}`], 0)
	require.NoError(t, s.node(g.Leader).Kill())
	if g.Leader != cluster.NodeID(victim.Name) {
		s.agree(s.others(g.Leader), above(g.Term))
	}
	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.node(g.Leader).Start())
	s.eventually("it is over", func() bool {
		out, _, code := bmqnode(t, "status", "--admin", victim.AdminAddr)
		return code == 0 && !strings.Contains(out, "disk-fails")
	})
}

// A disk that is full for a moment, just when members come whose addresses should be
// remembered, costs the node nothing: it votes when there is room again, and then it
// remembers the addresses, too.
func TestNodeWhoseDiskWasFullForAMomentVotesAgain(t *testing.T) {
	t.Parallel()
	options := quick()
	options["voters"] = []string{"n1", "n2", "n3"}
	s := layOut(t, 4, options)
	voters, late := s.Nodes()[:3], s.Nodes()[3]
	for _, n := range voters {
		mountSmall(t, n.Dir+"/state", "256k")
	}
	for _, n := range voters {
		require.NoError(t, n.Start())
	}
	first := s.agree(voters, nil)
	victim := s.others(first.Leader, "n4")[0]
	filler := victim.Dir + "/state/filler"
	fill(t, filler)
	require.NoError(t, late.Start())
	invent(t, victim, 100)
	s.eventually("their addresses cannot be written", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.lines, func(l procs.Line) bool {
			return l.Node == victim.Name && l.Level == "warn" && strings.Contains(l.Text, "addresses")
		})
	})
	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.node(first.Leader).Kill())
	rest := s.others(first.Leader)
	s.agree(rest, above(first.Term))
	s.eventually("the address is written", func() bool {
		text, err := os.ReadFile(victim.Dir + "/state/PEERS")
		return err == nil && strings.Contains(string(text), late.GossipAddr)
	})
	require.NoError(t, s.node(first.Leader).Start())
	s.agree(s.Nodes(), nil)
}
