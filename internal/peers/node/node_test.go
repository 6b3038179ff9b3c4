package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// scripted is a member that leads as it is told, and notes when it was asked.
type scripted struct {
	answers []bool
	asked   []int64
}

func (s *scripted) Leads() bool {
	s.asked = append(s.asked, Now())
	return s.answers[len(s.asked)-1]
}

func (*scripted) HandOver() error { return nil }

// A span lies between the first and the last yes, so two nodes that lead one after the
// other are not taken for two leaders, however late their answers arrive.
func TestSpans(t *testing.T) {
	s := &scripted{answers: []bool{false, true, true, true, false, true}}
	w := watcher{member: s}
	before := false
	for range s.answers {
		before = w.sample(before)
	}
	require.Len(t, w.spans, 2)
	require.GreaterOrEqual(t, w.spans[0].From, s.asked[1])
	require.Less(t, w.spans[0].From, s.asked[2])
	require.Greater(t, w.spans[0].To, s.asked[2])
	require.LessOrEqual(t, w.spans[0].To, s.asked[3])
	require.Equal(t, w.spans[1].From, w.spans[1].To, "one yes is a moment")
}
