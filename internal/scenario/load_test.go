package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEverythingTheFormatHas(t *testing.T) {
	s, err := Load("testdata/good/everything.yaml")
	require.NoError(t, err)
	require.Len(t, s.Nodes, 4)
	require.Len(t, s.Timeline, 21)
	require.Len(t, s.Expect, 9)
}
