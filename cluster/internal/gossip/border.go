package gossip

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// After the hello a stream is memberlist's, and begins with the name of the
// cluster: labelMark, its length, the name. memberlist closes a stream of another
// cluster without a word; the border says why, in memberlist's own way of
// reporting an error, so that whoever dials learns what is wrong with it.
const (
	labelMark = 244 // memberlist's hasLabelMsg
	errorMark = 13  // memberlist's errMsg
	// refusalText is what the dialer is told; it reads its name out of it again.
	refusalText = "node %q belongs to cluster %q, not to %q"

	refusalTime  = time.Second // to read the refusal
	refusalBytes = 1 << 20     // of the dialer's state that are read meanwhile
)

// border lets streams of this cluster through.
type border struct {
	cluster string
	node    elector.NodeID
	found   func(findings.Kind, elector.NodeID, string)
	log     hclog.Logger

	mu     sync.Mutex
	warned map[string]bool // clusters
}

// pass returns a stream that memberlist can read, or nil if it was closed.
func (b *border) pass(conn net.Conn, from elector.NodeID) net.Conn {
	peeked, label, err := peekLabel(conn)
	switch {
	case err != nil:
		b.log.Debug("stream refused", "from", conn.RemoteAddr(), "error", err)
		_ = conn.Close()
		return nil
	case label != b.cluster:
		b.report(conn, from, label)
		b.refuse(conn, label)
		return nil
	}
	return peeked
}

// peekLabel reads the name of the cluster and leaves it to be read again.
func peekLabel(conn net.Conn) (net.Conn, string, error) {
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, "", err
	}
	r := bufio.NewReader(conn)
	head, err := r.Peek(2)
	if err != nil {
		return nil, "", fmt.Errorf("read label: %w", err)
	}
	label := ""
	if head[0] == labelMark {
		all, err := r.Peek(2 + int(head[1]))
		if err != nil {
			return nil, "", fmt.Errorf("read label: %w", err)
		}
		label = string(all[2:])
	}
	return peekedConn{conn, r}, label, conn.SetDeadline(time.Time{})
}

// peekedConn reads what was peeked again.
type peekedConn struct {
	net.Conn
	r *bufio.Reader
}

// Read reads from the stream.
func (c peekedConn) Read(b []byte) (int, error) { return c.r.Read(b) }

func (b *border) report(conn net.Conn, from elector.NodeID, label string) {
	b.found(findings.WrongCluster, from,
		fmt.Sprintf("node %q at %s belongs to cluster %q, node %q to %q", from, conn.RemoteAddr(), label, b.node, b.cluster))
	b.mu.Lock()
	first := !b.warned[label] && len(b.warned) < maxGone
	if b.warned == nil {
		b.warned = map[string]bool{}
	}
	if first {
		b.warned[label] = true
	}
	b.mu.Unlock()
	if first {
		// The same is said of packets: misconfigurations.
		b.log.Warn("gossip of another cluster arrives here: a join address points into a foreign cluster, in one direction or the other",
			"peer", from, "from", conn.RemoteAddr(), "cluster", label, "own", b.cluster)
	}
}

// refuse says why, and closes so that the dialer has a chance to read it.
func (b *border) refuse(conn net.Conn, label string) {
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(refusalTime)); err != nil {
		return
	}
	if _, err := conn.Write(b.refusal(label)); err != nil {
		return
	}
	// Closing while unread data waits would reset the stream and take the refusal with it.
	if err := closeWrite(conn); err == nil {
		_, _ = io.CopyN(io.Discard, conn, refusalBytes)
	}
}

// refusal is memberlist's message that something went wrong.
func (b *border) refusal(label string) []byte {
	var body []byte
	text := fmt.Sprintf(refusalText, b.node, b.cluster, label)
	if err := codec.NewEncoderBytes(&body, metaHandle()).Encode(struct{ Error string }{text}); err != nil {
		panic("gossip: a string cannot be encoded: " + err.Error())
	}
	return append([]byte{errorMark}, body...)
}

func closeWrite(conn net.Conn) error {
	if c, ok := conn.(*trackedConn); ok {
		conn = c.Conn
	}
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// refusedBy returns who closed a stream because it belongs to another cluster,
// and what it said. memberlist hands over nothing but the text.
func refusedBy(err error) (by elector.NodeID, text string, ok bool) {
	_, text, ok = strings.Cut(err.Error(), "remote error: ")
	if !ok {
		return "", "", false
	}
	var node, theirs, ours string
	if n, _ := fmt.Sscanf(text, refusalText, &node, &theirs, &ours); n != 3 {
		return "", "", false
	}
	return elector.NodeID(node), fmt.Sprintf(refusalText, node, theirs, ours), true
}
