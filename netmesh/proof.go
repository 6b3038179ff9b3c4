package netmesh

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	proofSize = 16 // bytes of one proof
	maxKeys   = 4  // that are remembered of the links to one process
)

// claimed is what the other end of a handshake shows to prove that it is the process of an earlier
// link. Without TLS anybody can claim a name, an identity and a boot. The key of a link is known
// only to the two processes that made it.
type claimed struct {
	sender        elector.NodeID
	dial          uint64
	first, later  []byte // proofs of its Hello or Welcome, and of its Join
	authenticated bool   // by TLS
}

// claimedBy is what a Hello or a Welcome shows.
func (h *handshake) claimedBy(theirs *hello) *claimed {
	return &claimed{
		sender: elector.NodeID(theirs.Node), dial: theirs.Dial, first: theirs.Proofs,
		authenticated: h.shown != nil,
	}
}

// prove reports whether the process knows the key; it need not if there is no key.
func (c *claimed) prove(key []byte) bool {
	return key == nil || c.authenticated || c.shows(key, frameHello, c.first) ||
		c.shows(key, frameWelcome, c.first) || c.shows(key, frameJoin, c.later)
}

func (c *claimed) shows(key []byte, in frameKind, proofs []byte) bool {
	want := proofOf(key, in, c.sender, c.dial)
	for proof := range slices.Chunk(proofs, proofSize) {
		if hmac.Equal(proof, want) {
			return true
		}
	}
	return false
}

// proofOf is bound to one frame of one connection, so that nobody can use it for another.
func proofOf(key []byte, in frameKind, sender elector.NodeID, dial uint64) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(binary.BigEndian.AppendUint64([]byte{byte(in)}, dial))
	sum.Write([]byte(sender))
	return sum.Sum(nil)[:proofSize]
}

// proofs show in a frame of a handshake that this process made the links to a node. There is one
// for each remembered key: one end may have lost a link, or may not have seen it come up.
func (m *Mesh) proofs(to elector.NodeID, in frameKind, dial uint64) (all []byte) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.peers[to]; p != nil {
		keys := p.keys
		if p.offered != nil {
			keys = append(slices.Clone(keys), p.offered)
		}
		for _, key := range keys {
			all = append(all, proofOf(key, in, m.cfg.Node, dial)...)
		}
	}
	return all
}

// number is the number by which a node distinguishes this process from others on copies of its
// data directory. Each node gets another number, so that none can pass it on to a third.
func (m *Mesh) number(to elector.NodeID) uint64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, m.process), to...))
	return max(binary.BigEndian.Uint64(sum[:]), 1)
}

// probed is what a probe, which may come from anybody, is told in place of a number.
func probed(number uint64, version uint) uint64 {
	if number == 0 || version < version4 { // it would take this for another process
		return 0
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("probe"), number))
	return max(binary.BigEndian.Uint64(sum[:]), 1)
}
