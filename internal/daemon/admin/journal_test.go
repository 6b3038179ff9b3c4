package admin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// newTestJournal is the journal of the first boot of a node, with n events.
func newTestJournal(n int) *journal {
	j := newJournal(cluster.Status{Node: "a", Boot: 3, Identity: "9f86d081-884c-7d65"})
	for range n {
		j.add(cluster.Event{Group: "g", Transition: elector.Transition{Term: 7}})
	}
	return j
}

func TestIDsAreOfOneBootOfOneDirectory(t *testing.T) {
	j := newTestJournal(5)
	require.Equal(t, "3.9f86d081-5", j.id(5))
	place, ok := j.place("3.9f86d081-4")
	require.True(t, ok)
	require.EqualValues(t, 4, place)
	for _, id := range []string{
		"", "5", "-", "-5", "3.9f86d081-", "3.9f86d081-x", "3.9f86d081--1", "3.9f86d081-6",
		"2.9f86d081-4", "3.0badcafe-4", "3-4", "3.9f86d081-99999999999999999999",
	} {
		_, ok := j.place(id)
		require.False(t, ok, id)
	}
}

func TestAJournalTellsWhatCameAfterAPlace(t *testing.T) {
	j := newTestJournal(5)
	for place, want := range map[uint64]int{0: 5, 3: 2, 5: 0} {
		x := j.after(place)
		require.Len(t, x.events, want)
		require.False(t, x.gap || x.closed)
	}
}

func TestAJournalIsBoundedAndSaysWhatIsGone(t *testing.T) {
	j := newTestJournal(10 * journalSize)
	require.LessOrEqual(t, len(j.events), journalSize)
	require.GreaterOrEqual(t, len(j.events), journalSize/2, "a good part of them is still there")
	oldest := j.last - uint64(len(j.events))
	require.False(t, j.after(oldest).gap)
	require.Len(t, j.after(oldest).events, len(j.events))
	require.True(t, j.after(oldest-1).gap)
	require.True(t, j.after(0).gap)
}

// TestAGapInTheSourceIsAGapForAll: the node itself was too busy to note all.
func TestAGapInTheSourceIsAGapForAll(t *testing.T) {
	j := newTestJournal(5)
	j.add(cluster.Event{Group: "g", Missed: 3})
	require.EqualValues(t, 9, j.newest())
	require.True(t, j.after(5).gap)
	x := j.after(8)
	require.False(t, x.gap)
	require.Len(t, x.events, 1)
	require.Equal(t, 3, x.events[0].data.(Event).Missed)
}

func TestAJournalWakesAndCloses(t *testing.T) {
	j, source := newTestJournal(0), make(chan cluster.Event)
	done := make(chan struct{})
	go func() { defer close(done); j.keep(source) }()
	x := j.after(0)
	source <- cluster.Event{Group: "g"}
	<-x.more
	x = j.after(0)
	require.Len(t, x.events, 1)
	require.False(t, x.closed)
	close(source)
	<-x.more
	<-done
	x = j.after(0)
	require.True(t, x.closed)
	require.Len(t, x.events, 1, "what it has stays readable")
}

// The records of few elections are followed, besides those that a reader names as long as it reads.
func TestAReaderThatNamesAnElectionHasItsRecords(t *testing.T) {
	j, ended := newTestJournal(0), map[string]bool{}
	begin := func(group string) bool {
		return j.begin(group, func() { ended[group] = true })
	}
	for i := range maxFollowed {
		require.True(t, begin(fmt.Sprintf("g%d", i)))
	}
	require.False(t, begin("g0"), "it is followed")
	require.False(t, begin("jobs"), "there is no room")
	leave, leaveToo := j.name("jobs"), j.name("jobs")
	require.True(t, begin("jobs"))
	leave()
	require.Empty(t, ended)
	leaveToo()
	require.Equal(t, map[string]bool{"jobs": true}, ended)
	j.end("jobs")
	j.name("g1")()
	require.False(t, ended["g1"], "there is room for it")
	require.False(t, begin("jobs"))
}
