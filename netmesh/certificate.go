package netmesh

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// certificateVersion is the first version of the protocol that has certificates.
const certificateVersion = 4

// certificate is a secret of one process about one evidence connection. The handshake tells
// its hash. Who shows the certificate itself on that connection has it from the process, and
// says that the process is dead: DeathProof.Hold.
// It has the form of a frame, its length first: a fault layer lets nothing else through.
type certificate [4 + 32]byte

func newCertificate() (c certificate) {
	binary.BigEndian.PutUint32(c[:4], uint32(len(c)-4))
	_, _ = rand.Read(c[4:]) // never fails
	return c
}

// commitment is what a peer can check the certificate with, and cannot make it from.
func (c *certificate) commitment() []byte {
	sum := sha256.Sum256(c[:])
	return sum[:]
}

// fulfils reports whether c is what a peer committed itself to.
func (c *certificate) fulfils(commitment []byte) bool {
	return subtle.ConstantTimeCompare(c.commitment(), commitment) == 1
}

// held is what DeathProof.Hold gets: nil where the peer would not understand it.
func (c *certificate) held(version uint) []byte {
	if version < certificateVersion {
		return nil
	}
	return c[:]
}
