package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		values []time.Duration
		q      float64
		want   time.Duration
	}{
		{hundred, 0.5, 50}, {hundred, 0.9, 90}, {hundred, 0.99, 99}, {hundred, 1, 100},
		{hundred[:30], 0.99, 100}, {hundred[:3], 0.5, 99}, {hundred[:1], 0.5, 100},
		{nil, 0.5, 0},
	} {
		require.Equal(t, c.want, quantile(c.values, c.q), "%v of %d values", c.q, len(c.values))
	}
}

func TestOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		nodes [][]span
		want  time.Duration
	}{
		"nobody":              {[][]span{nil, nil}, 0},
		"one after the other": {[][]span{{{0, 10}}, {{10, 20}}}, 0},
		"both for a while":    {[][]span{{{0, 10}}, {{7, 20}}}, 3},
		"one within another":  {[][]span{{{0, 10}}, {{2, 3}, {5, 7}}}, 3},
		"three at once":       {[][]span{{{0, 10}}, {{2, 8}}, {{4, 6}}}, 6},
		"one with itself":     {[][]span{{{0, 10}, {10, 20}}, nil}, 0},
	} {
		require.Equal(t, c.want, overlap(c.nodes), name)
	}
}
