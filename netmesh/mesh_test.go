package netmesh

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesTravelBothWays(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.knows(b)
	a.sees(t, "b", "up 1")
	b.sees(t, "a", "up 1")

	require.True(t, a.Send("b", "g", heartbeat(7)))
	b.sees(t, "a", "g LeaderHeartbeat 7")
	require.True(t, b.Send("a", "g", ack(7)))
	a.sees(t, "b", "g HeartbeatAck 7")
}

func TestGoodbyeIsEvidenceOfLife(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.knows(b)
	b.knows(a)
	a.sees(t, "b", "up 1")
	b.sees(t, "a", "up 1")

	b.close(t)
	a.sees(t, "b", "down goodbye")
	require.Zero(t, a.count("b", "died refused-after-eof"))
	require.Equal(t, 1, b.count("a", "down local"))
}
