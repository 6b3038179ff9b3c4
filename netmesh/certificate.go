package netmesh

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// certificate is a secret that a process makes for one evidence connection. The handshake tells
// its hash. Whoever shows the certificate on that connection has it from the process, and says
// that the process is dead: see DeathProof.Hold. A certificate has the form of a frame, with its
// length first, because a fault layer lets nothing else through.
type certificate [4 + 32]byte

func newCertificate() (c certificate) {
	binary.BigEndian.PutUint32(c[:4], uint32(len(c)-4))
	_, _ = rand.Read(c[4:]) // never fails
	return c
}

// commitment is the hash by which a peer can check the certificate.
func (c *certificate) commitment() []byte {
	sum := sha256.Sum256(c[:])
	return sum[:]
}

// fulfils reports whether c has the hash that the peer told in its handshake.
func (c *certificate) fulfils(commitment []byte) bool {
	return subtle.ConstantTimeCompare(c.commitment(), commitment) == 1
}

// held returns the argument for DeathProof.Hold: nil if the peer would not understand it.
func (c *certificate) held(version uint) []byte {
	if version < version4 {
		return nil
	}
	return c[:]
}
