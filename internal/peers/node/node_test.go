package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportsAreReadAsWritten(t *testing.T) {
	for _, r := range []Report{
		{Kind: Saw, From: 5, Text: "n1"}, {Kind: Saw, From: 5}, {Kind: Answer, Yes: true},
		{Kind: Led, From: 1, To: 1 << 62}, {Kind: Failed, Text: "no answer in time"},
	} {
		read, err := Parse(r.String())
		require.NoError(t, err)
		require.Equal(t, r, read)
	}
	_, err := Parse("panic: a library spoke")
	require.Error(t, err)
	_, err = Parse("saw at noon true n1")
	require.Error(t, err)
}

// answers is a member that leads as it is told.
type answers []bool

func (a *answers) Leads() bool {
	yes := (*a)[0]
	*a = (*a)[1:]
	return yes
}

func (*answers) HandOver() error { return nil }

// A span lies between the first and the last yes, so that two nodes of which one asks
// late are not taken for two leaders.
func TestSpans(t *testing.T) {
	w := watcher{member: &answers{false, true, true, true, false, true}}
	began := Now()
	var marks []int64
	for before := false; len(*w.member.(*answers)) > 0; {
		before = w.sample(before)
		marks = append(marks, Now())
	}
	require.Len(t, w.spans, 2)
	first, second := w.spans[0], w.spans[1]
	require.Greater(t, first.From, max(began, marks[0]))
	require.Less(t, first.From, marks[1])
	require.Greater(t, first.To, marks[2])
	require.Less(t, first.To, marks[3])
	require.Equal(t, second.From, second.To)
}
