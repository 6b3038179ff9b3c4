package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func (h *hub) say(term lsn.Term) {
	h.publish("x", elector.Transition{Term: term}, time.Time{}, "")
}

// drain takes what waits, without waiting itself.
func drain(s *Subscription) (terms []lsn.Term, missed int) {
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return terms, missed
			}
			terms, missed = append(terms, e.Term), missed+e.Missed
		default:
			return terms, missed
		}
	}
}

func TestSubscriberThatNeverReadsKeepsTheNewestEvents(t *testing.T) {
	var h hub
	slow, quick := h.subscribe("", 3), h.subscribe("", 100)
	for term := lsn.Term(1); term <= 10; term++ {
		h.say(term)
	}
	terms, missed := drain(slow)
	require.Equal(t, []lsn.Term{8, 9, 10}, terms, "the last word is the newest")
	require.Equal(t, 7, missed)
	terms, missed = drain(quick)
	require.Len(t, terms, 10, "one slow subscriber takes nothing from another")
	require.Zero(t, missed)
}

func TestMissedEventsAreCountedOnceEach(t *testing.T) {
	var h hub
	s := h.subscribe("", 1)
	h.say(1)
	h.say(2)
	h.say(3)
	e := <-s.Events()
	require.Equal(t, lsn.Term(3), e.Term)
	require.Equal(t, 2, e.Missed)
	h.say(4)
	require.Zero(t, (<-s.Events()).Missed)
}

func TestClosingEndsTheChannelOnce(t *testing.T) {
	var h hub
	a, b := h.subscribe("", 1), h.subscribe("", 1)
	a.Close()
	a.Close()
	h.say(1)
	h.close()
	b.Close()
	_, ok := <-a.Events()
	require.False(t, ok)
	require.Equal(t, lsn.Term(1), (<-b.Events()).Term,
		"what was published before the end still arrives")
	_, ok = <-b.Events()
	require.False(t, ok)
	_, ok = <-h.subscribe("", 1).Events()
	require.False(t, ok, "a closed node has no more events")
}

func TestSubscriberOfOneElectionHearsOfNoOther(t *testing.T) {
	var h hub
	one, all := h.subscribe("x", 10), h.subscribe("", 10)
	for _, group := range []string{"x", "y", "x", "y"} {
		h.publish(group, elector.Transition{}, time.Time{}, "")
	}
	terms, missed := drain(one)
	require.Len(t, terms, 2)
	require.Zero(t, missed)
	terms, _ = drain(all)
	require.Len(t, terms, 4)
}
