package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestANodeIsKilledAndTheOthersWorkOnItsShards(t *testing.T) {
	timing := elector.Article()
	timing.InitialWait, timing.MaxRandomWait = timing.Promise(), 500*time.Millisecond // to be faster
	var out bytes.Buffer
	require.NoError(t, run(&out, t.TempDir(), 50, time.Minute, timing), "%s", &out)
	require.Regexp(t, `all nodes are up: after .* every shard has an owner: map\[`, out.String())
	require.Regexp(t, `node c is dead: .* every shard has an owner: map\[a:\d+ b:\d+ d:\d+ e:\d+\]`,
		out.String())
	require.Contains(t, out.String(), " 0 overlaps")
}

func TestTheResourceNoticesTwoOwnersAndOldTokens(t *testing.T) {
	r, out := newResource(2), &bytes.Buffer{}
	token := func(n uint64) lsn.LSN { return lsn.LSN{Term: 1, Counter: n} }
	r.owns(0, "a")
	require.NoError(t, r.write(0, token(2)))
	require.Error(t, r.write(0, token(2)))
	require.Error(t, r.write(0, token(1)))
	require.NoError(t, r.write(1, token(1)), "each shard has a fence of its own")
	require.NoError(t, r.verdict(out))
	r.owns(0, "")
	r.owns(0, "b")
	require.NoError(t, r.verdict(out))
	r.owns(0, "a")
	require.ErrorContains(t, r.verdict(out), "two nodes worked on a shard at once")
	require.Contains(t, out.String(), "2 writes, 2 refused, 1 overlaps\n")
}
