package netmesh

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"fmt"
)

// A datagram has a fixed form; all numbers are big endian:
//
//	 0  version of this form, 1
//	 1  datagramKind
//	 2  session
//	10  sequence of the beat, or of the one that is answered
//	18  what it says: see wireBeat.body and wireAck.body
//	    proof, 16 bytes
//
// With TLS the proof is the tag of AES-256-GCM: it covers all, and what the datagram says is
// encrypted. Without TLS the proof is a secret of the handshake. It keeps out who has not seen that,
// and not who reads along.
const (
	datagramForm = 1
	datagramHead = 18
	maxDatagram  = datagramHead + 6*8 + proofSize
)

// datagramKind tells datagrams apart.
type datagramKind uint8

const (
	beatDatagram datagramKind = iota
	ackDatagram
	datagramKinds
)

// datagramSizes are the lengths of the kinds of datagrams, in bytes.
var datagramSizes = [datagramKinds]int{maxDatagram, datagramHead + 4*8 + proofSize}

// readHead returns what the head of a datagram says; ok is false if no correct peer sends it.
func readHead(packet []byte) (kind datagramKind, session, sequence uint64, ok bool) {
	if len(packet) < datagramHead || packet[0] != datagramForm ||
		packet[1] >= byte(datagramKinds) || len(packet) != datagramSizes[packet[1]] {
		return 0, 0, 0, false
	}
	number := binary.BigEndian
	return datagramKind(packet[1]), number.Uint64(packet[2:]), number.Uint64(packet[10:]), true
}

// body appends what the datagram of a beat says.
func (w *wireBeat) body(to []byte) []byte {
	return appendNumbers(to, uint64(w.SentAt), w.Datagrams, uint64(w.Period), uint64(w.Late),
		w.Revision, w.Hash)
}

// body appends what the datagram of an ack says.
func (w *wireAck) body(to []byte) []byte {
	return appendNumbers(to, uint64(w.SentAt), w.Datagrams, w.Revision, uint64(w.Wanted))
}

func appendNumbers(to []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return to
}

// readBeat and readAck are the opposite of body. The bodies have the lengths of their kinds.
func readBeat(sequence uint64, body []byte) wireBeat {
	at := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	return wireBeat{Sequence: sequence, SentAt: int64(at(0)), Datagrams: at(1),
		Period: int64(at(2)), Late: int64(at(3)), Revision: at(4), Hash: at(5)}
}

func readAck(sequence uint64, body []byte) wireAck {
	at := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	return wireAck{Sequence: sequence, SentAt: int64(at(0)), Datagrams: at(1), Revision: at(2),
		Wanted: int64(at(3))}
}

// seals makes, or checks, the proofs of the datagrams of one kind in one direction. Each has a key
// of its own, or beat n and ack n of one end would have one key and one nonce. Not for concurrent
// use.
type seals struct {
	aead   cipher.AEAD // nil without TLS
	secret [proofSize]byte
	nonce  [12]byte // a field, because a local variable would escape to the heap
}

// directions are the seals of what one end sends and of what it receives, by kind.
type directions struct{ out, in [datagramKinds]seals }

const (
	// exporterLabel needs no registration: RFC 5705, section 4.
	exporterLabel = "EXPERIMENTAL-bmqelect-beats"
	secretSize    = 32
)

// newDirections makes the seals of a session. The secrets come from its TLS connection, or from the
// key that the handshake has told both ends. Both ends make the same ones; out of the dialer are in
// of the acceptor.
func newDirections(session uint64, key []byte, over *tls.ConnectionState, dialed bool) (
	d directions, err error,
) {
	var secrets []byte
	if over != nil {
		secrets, err = over.ExportKeyingMaterial(exporterLabel, nil, 2*int(datagramKinds)*secretSize)
		if err != nil {
			return d, fmt.Errorf("keys for datagrams: %w", err)
		}
	}
	ways := [2]*[datagramKinds]seals{&d.out, &d.in}
	if !dialed {
		ways[0], ways[1] = ways[1], ways[0]
	}
	for w, way := range ways {
		for kind := range way {
			n := w*len(way) + kind
			if over == nil {
				mac := hmac.New(sha256.New, key)
				mac.Write(append(binary.BigEndian.AppendUint64([]byte("datagrams"), session), byte(n)))
				copy(way[kind].secret[:], mac.Sum(nil))
				continue
			}
			block, err := aes.NewCipher(secrets[n*secretSize:][:secretSize])
			if err == nil {
				way[kind].aead, err = cipher.NewGCM(block)
			}
			if err != nil {
				return d, fmt.Errorf("keys for datagrams: %w", err)
			}
		}
	}
	return d, nil
}

// seal completes a datagram that has all except its proof. It must be called once only for a
// sequence, because that is the nonce.
func (s *seals) seal(packet []byte) []byte {
	if s.aead == nil {
		return append(packet, s.secret[:]...)
	}
	copy(s.nonce[4:], packet[10:datagramHead])
	head, says := packet[:datagramHead], packet[datagramHead:]
	return s.aead.Seal(head, s.nonce[:], says, head)
}

// open returns what a datagram says, or nil if its proof is wrong. It changes the datagram.
func (s *seals) open(packet []byte) []byte {
	if end := len(packet) - proofSize; s.aead == nil {
		if subtle.ConstantTimeCompare(packet[end:], s.secret[:]) == 0 {
			return nil
		}
		return packet[datagramHead:end]
	}
	copy(s.nonce[4:], packet[10:datagramHead])
	says := packet[datagramHead:]
	body, err := s.aead.Open(says[:0], s.nonce[:], says, packet[:datagramHead])
	if err != nil {
		return nil
	}
	return body
}
