package clustertest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoryKeepsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory()
		for i := range storyLength + 3 {
			s.add("event %d", i)
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(s.String()), "\n")
		require.Len(t, lines, storyLength+1)
		require.Equal(t, "(3 lines before that)", lines[0])
		require.Equal(t, "         3s  event 3", lines[1])
		require.Equal(t, "      3m22s  event 202", lines[storyLength])
	})
}
