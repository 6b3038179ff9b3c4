package lsn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

func TestOrder(t *testing.T) {
	ascending := []lsn.LSN{
		{},
		{Counter: 9},
		{Term: 1},
		{Term: 1, Counter: 1},
		{Term: 1, Counter: math.MaxUint64},
		{Term: 2},
		{Term: lsn.MaxTerm, Counter: 1},
	}
	for i, a := range ascending {
		for j, b := range ascending {
			require.Equal(t, min(1, max(-1, i-j)), a.Compare(b), "%s with %s", a, b)
			require.Equal(t, i < j, a.Less(b), "%s before %s", a, b)
		}
		require.Equal(t, i == 0, a.IsZero(), "%s", a)
	}
}

func TestTermBounds(t *testing.T) {
	for _, c := range []struct {
		term       lsn.Term
		valid, led bool
	}{
		{0, true, false},
		{1, true, true},
		{lsn.MaxTerm, true, true},
		{lsn.MaxTerm + 1, false, false},
		{math.MaxUint64, false, false},
	} {
		require.Equal(t, c.valid, c.term.Valid(), "%d", c.term)
		require.Equal(t, c.led, c.term.Led(), "%d", c.term)
	}
}
