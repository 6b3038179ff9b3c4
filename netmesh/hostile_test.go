package netmesh

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// stranger is a hand-made connection to a node under test.
type stranger struct {
	*handshake
	t testing.TB
}

func intrude(t testing.TB, n *node) *stranger {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &stranger{shake(t, conn, n, patience), t}
}

// intrudeOn is intrude from the host x of a network in memory.
func intrudeOn(t *testing.T, net *memnet.Network, n *node) *stranger {
	t.Helper()
	conn, err := net.Host("x").Dial(t.Context(), n.cfg.Bind)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &stranger{shake(t, conn, n, time.Hour), t}
}

// helloFrom is a valid Hello of a member "x" to n, in the oldest accepted version of the protocol.
func helloFrom(n *node) *hello {
	id := uuid.NewSHA1(uuid.Nil, []byte("x"))
	return &hello{
		Magic: magic, MinVersion: minVersion, MaxVersion: minVersion, Cluster: n.cfg.Cluster, Node: "x",
		Identity: id[:], Boot: 1, Address: "127.0.0.1:1", To: string(n.cfg.Node), Dial: 1,
	}
}

// link makes the stranger a member with an established link.
func (s *stranger) link(h *hello) {
	s.t.Helper()
	require.NoError(s.t, s.send(frameHello, h))
	require.NoError(s.t, s.expect(frameWelcome, &hello{}))
	require.NoError(s.t, s.send(frameJoin, &ping{}))
}

// isClosed waits until the node has closed the connection.
func (s *stranger) isClosed() {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, s.conn)
	if timeout, ok := err.(net.Error); ok {
		require.False(s.t, timeout.Timeout(), "still open")
	}
}

func (s *stranger) write(b ...byte) {
	_, err := s.conn.Write(b)
	require.NoError(s.t, err)
}

// says sends an ack on an established link.
func (s *stranger) says(seq uint64) {
	_, frame, err := s.enc.batch([]queued{{"g", ack(seq)}}, smallFrame)
	require.NoError(s.t, err)
	s.write(frame...)
}

// fails waits until the last error of the first peer contains a text.
func (n *node) fails(t testing.TB, text string) {
	t.Helper()
	until(t, func() bool { return strings.Contains(n.Links()[0].LastErr, text) })
}

// counts waits until a reason was counted.
func (n *node) counts(t testing.TB, reason Reason) {
	t.Helper()
	require.Eventually(t, func() bool { return n.Counters()[reason] > 0 }, patience, glance,
		"waiting for %s", reason)
}

// TestHostileConnections: whatever a connection does before it is a link, it is
// closed, the reason is counted, and the link between two others does not notice.
func TestHostileConnections(t *testing.T) {
	say := func(change func(*hello)) func(*stranger, *node) {
		return func(s *stranger, n *node) {
			h := helloFrom(n)
			change(h)
			require.NoError(s.t, s.send(frameHello, h))
		}
	}
	for name, c := range map[string]struct {
		act  func(*stranger, *node)
		want Reason
	}{
		"says nothing": {func(*stranger, *node) {}, reasonSilent},
		"port scanner": {func(s *stranger, _ *node) { _ = s.conn.Close() }, reasonVanished},
		"reset":        {func(s *stranger, _ *node) { reset(s.conn) }, reasonVanished},
		"http": {func(s *stranger, _ *node) { s.write([]byte("GET / HTTP/1.1\r\n\r\n")...) },
			ReasonOversized},
		"4 GiB announced": {func(s *stranger, _ *node) { s.write(0xff, 0xff, 0xff, 0xff, 1) },
			ReasonOversized},
		"empty frame":   {func(s *stranger, _ *node) { s.write(0, 0, 0, 0) }, ReasonGarbage},
		"unknown frame": {func(s *stranger, _ *node) { s.write(0, 0, 0, 1, 99) }, ReasonGarbage},
		"batch, no handshake": {func(s *stranger, _ *node) { s.write(0, 0, 0, 1, byte(frameBatch)) },
			ReasonGarbage},
		"garbage in hello": {func(s *stranger, _ *node) {
			s.write(0, 0, 0, 3, byte(frameHello), 0xc1, 0xc1)
		}, ReasonGarbage},
		"truncated": {func(s *stranger, _ *node) {
			s.write(0, 0, 0, 100, byte(frameHello), 1, 2)
			_ = closeWrite(s.conn)
		}, ReasonGarbage},
		"half a frame, then silence": {func(s *stranger, _ *node) {
			s.write(0, 0, 0, 100, byte(frameHello))
		}, reasonSilent},
		"no join":     {say(func(*hello) {}), reasonSilent},
		"wrong magic": {say(func(h *hello) { h.Magic = "raft" }), ReasonGarbage},
		"later version": {say(func(h *hello) { h.MinVersion, h.MaxVersion = 9, 12 }),
			ReasonVersion},
		"foreign cluster": {say(func(h *hello) { h.Cluster = "production" }),
			ReasonForeignCluster},
		"wrong node":          {say(func(h *hello) { h.To = "z" }), ReasonWrongNode},
		"no identity":         {say(func(h *hello) { h.Identity = nil }), ReasonGarbage},
		"boot 0":              {say(func(h *hello) { h.Boot = 0 }), ReasonGarbage},
		"node named *":        {say(func(h *hello) { h.Node = "*" }), ReasonGarbage},
		"name for a terminal": {say(func(h *hello) { h.Node = "\x1b[2Jevil" }), ReasonGarbage},
		"own name":            {say(func(h *hello) { h.Node = h.To }), ReasonDuplicateName},
		"name of a peer":      {say(func(h *hello) { h.Node = "b" }), ReasonDuplicateName},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(name, "name") || name == "foreign cluster" {
				plainOnly(t)
			}
			a := start(t, "a", func(c *Config) { c.times.handshake = 300 * time.Millisecond })
			b := start(t, "b")
			a.knows(b)
			a.sees(t, "b", "up 1")
			b.sees(t, "a", "up 1")

			s := intrude(t, a)
			c.act(s, a)
			a.counts(t, c.want)
			if c.want != reasonVanished {
				s.isClosed()
			}
			require.True(t, b.Send("a", "g", ack(3)))
			a.sees(t, "b", "g HeartbeatAck 3")
			require.Equal(t, 2, len(a.all("b")), "the other link noticed something: %v", a.all("b"))
			require.Empty(t, a.all("x"))
		})
	}
}

// Peers that stop hang up, as port scanners do. That is worth no warning.
func TestWhoHangsUpIsNoWarning(t *testing.T) {
	var log lines
	a := start(t, "a", func(c *Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})
	})
	_ = intrude(t, a).conn.Close()
	until(t, func() bool { return log.have("connection refused") })
	require.True(t, log.have("[DEBUG] connection refused"), log.String())
}

// TestHostileMembers: a member that misbehaves after its handshake loses its link.
func TestHostileMembers(t *testing.T) {
	says := func(b ...byte) func(*stranger) { return func(s *stranger) { s.write(b...) } }
	tells := func(f Facts) func(*stranger) {
		return func(s *stranger) { require.NoError(s.t, s.send(frameFacts, &f)) }
	}
	notes := func(n Note) func(*stranger) {
		return func(s *stranger) { require.NoError(s.t, s.send(frameNote, &n)) }
	}
	long := strings.Repeat("x", 300)
	changes := func(c wireChange) func(*stranger) {
		return func(s *stranger) { require.NoError(s.t, s.send(frameChanges, &c)) }
	}
	join := uint8(pair.Join)
	for name, c := range map[string]struct {
		act  func(*stranger)
		want Reason
	}{
		"garbage":        {says(0, 0, 0, 3, byte(frameBatch), 0xc1, 0xc1), ReasonGarbage},
		"second hello":   {says(0, 0, 0, 1, byte(frameHello)), ReasonGarbage},
		"oversized":      {says(binary.BigEndian.AppendUint32(nil, maxFrame+1)...), ReasonOversized},
		"falls silent":   {says(), reasonTimeout},
		"nonsense ping":  {says(0, 0, 0, 2, byte(framePing), 0xa1), ReasonGarbage},
		"unwanted pongs": {says(0, 0, 0, 3, byte(framePong), 0x91, 0x63, 0, 0, 0, 0), ReasonGarbage},
		"half a record":  {says(0, 0, 0, 3, byte(frameRecords), 0x91, 0xc0), ReasonGarbage},
		"nonsense note":  {says(0, 0, 0, 2, byte(frameNote), 0xa1), ReasonGarbage},
		"endless note":   {notes(Note{Group: "g", Body: make([]byte, MaxNote+1)}), ReasonGarbage},
		"a note of none": {notes(Note{Body: []byte("x")}), ReasonGarbage},
		"half a change":  {says(0, 0, 0, 2, byte(frameChanges), 0xa1), ReasonGarbage},
		"what change":    {changes(wireChange{What: 9, Group: []byte("g"), Term: 1}), ReasonGarbage},
		"change of none": {changes(wireChange{What: join, Term: 1}), ReasonGarbage},
		"endless change": {changes(wireChange{What: join, Group: []byte(long), Term: 1}), ReasonGarbage},
		"absurd term":    {changes(wireChange{What: join, Group: []byte("g"), Term: 1 << 63}), ReasonGarbage},
		"beat 0":         {says(0, 0, 0, 2, byte(frameBeat), 0x90), ReasonGarbage},
		"ack 0":          {says(0, 0, 0, 2, byte(frameAck), 0x90), ReasonGarbage},
		"no facts":       {says(0, 0, 0, 2, byte(frameFacts), 0xa1), ReasonGarbage},

		"unsorted voters": {tells(Facts{Voters: []string{"b", "a"}, VoterCount: 2}), ReasonGarbage},
		"more than all":   {tells(Facts{Voters: []string{"a", "b"}, VoterCount: 1}), ReasonGarbage},
		"endless voter":   {tells(Facts{Voters: []string{long}, VoterCount: 1}), ReasonGarbage},
		"half a setting":  {tells(Facts{Settings: []string{"lease"}}), ReasonGarbage},
		"many settings":   {tells(Facts{Settings: make([]string, 2*maxSettings+2)}), ReasonGarbage},
		"endless setting": {tells(Facts{Settings: []string{"lease", long}}), ReasonGarbage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "a", told, func(c *Config) { c.times.idle = time.Second })
			s, h := intrude(t, a), helloFrom(a)
			h.MaxVersion = maxVersion
			s.link(h)
			a.sees(t, "x", "up 1")
			c.act(s)
			a.counts(t, c.want)
			s.isClosed()
			want := "down local"
			if c.want == reasonTimeout {
				want = "down timeout"
			}
			a.sees(t, "x", want)
			require.Len(t, a.all("x"), 2)
			require.False(t, a.observed("x tells"))
		})
	}
}
