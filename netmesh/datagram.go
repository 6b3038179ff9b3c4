package netmesh

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// A datagram is a word behind 10 bytes, the version of this form, the wordKind and the session; 16
// bytes that prove it follow. It is sealed by AES-256-GCM: what follows the sequence is encrypted,
// what is before it is authenticated, and the sequence is the nonce.
const (
	datagramForm = 1
	sequenceAt   = 10
	datagramHead = sequenceAt + 8
	sealSize     = 16
	maxDatagram  = sequenceAt + 7*8 + sealSize
)

// readHead returns what the head of a datagram says; ok is false if no correct peer sends it.
func readHead(packet []byte) (kind wordKind, session, sequence uint64, ok bool) {
	if len(packet) < datagramHead || packet[0] != datagramForm || packet[1] >= byte(wordKinds) ||
		len(packet) != sequenceAt+wordSizes[packet[1]]+sealSize {
		return 0, 0, 0, false
	}
	number := binary.BigEndian
	return wordKind(packet[1]), number.Uint64(packet[2:]), number.Uint64(packet[sequenceAt:]), true
}

// seals are the keys of one direction. Each kind of word has its own, or beat n and ack n of one
// end would have one key and one nonce. Not for concurrent use.
type seals struct {
	aead  [wordKinds]cipher.AEAD
	nonce [12]byte // a field, because a local variable would escape to the heap
}

// keyLabel needs no registration: RFC 5705, section 4.
const keyLabel = "EXPERIMENTAL-bmqelect-beats"

// makeSeals makes the seals of what a link sends and of what it receives. The keys come from the
// TLS connection. Without TLS they come from the key that the handshake has told both ends: they
// keep out all who have not read that.
func (l *link) makeSeals(h *handshake) (out, in seals, err error) {
	const size = 32
	var keys []byte
	if s, ok := h.conn.(*secured); ok {
		state := s.ConnectionState()
		keys, err = state.ExportKeyingMaterial(keyLabel, nil, 2*int(wordKinds)*size)
	} else {
		keys, err = hkdf.Key(sha256.New, l.key, nil, keyLabel, 2*int(wordKinds)*size)
	}
	if err != nil {
		return out, in, fmt.Errorf("keys of datagrams: %w", err)
	}
	dialer, acceptor := &out, &in
	if !l.dialed {
		dialer, acceptor = acceptor, dialer
	}
	for kind := range wordKinds {
		for _, from := range [...]*seals{dialer, acceptor} {
			block, _ := aes.NewCipher(keys[:size]) // keys of this size never fail
			from.aead[kind], _ = cipher.NewGCM(block)
			keys = keys[size:]
		}
	}
	return out, in, nil
}

// seal appends the datagram of a word to an empty buffer. It must be called only once for a
// sequence of a kind, which is the nonce.
func (s *seals) seal(to []byte, session uint64, w *word) []byte {
	to = binary.BigEndian.AppendUint64(append(to, datagramForm, byte(w.kind)), session)
	to = w.append(to)
	copy(s.nonce[4:], to[sequenceAt:datagramHead])
	return s.aead[w.kind].Seal(to[:datagramHead], s.nonce[:], to[datagramHead:], to[:datagramHead])
}

// open returns the body of a datagram, or nil if the other end of the session has not made it. The
// datagram is changed.
func (s *seals) open(kind wordKind, packet []byte) []byte {
	copy(s.nonce[4:], packet[sequenceAt:datagramHead])
	sealed := packet[datagramHead:]
	_, err := s.aead[kind].Open(sealed[:0], s.nonce[:], sealed, packet[:datagramHead])
	if err != nil {
		return nil
	}
	return packet[sequenceAt : len(packet)-sealSize]
}
