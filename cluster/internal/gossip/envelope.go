package gossip

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/memberlist"
)

// Encrypted text is a version, and the result of cipher.NewGCMWithRandomNonce.
const (
	sealVersion = 1
	sealSize    = 1 + 12 + 16 // what encryption adds: version, nonce and tag
)

// Why this node cannot read what the other end sends.
var (
	errNoKey    = errors.New("the other end encrypts gossip, and this node has no key")
	errWrongKey = errors.New("the other end encrypts gossip with a key that this node does not have")
	errPlain    = errors.New("the other end does not encrypt gossip, and this node does")
)

// envelope adds the cluster's name and encryption to what memberlist sends, and removes them
// from what it receives. So memberlist has no keys, and the keys can change while it runs. An
// envelope is never changed in place.
type envelope struct {
	label   []byte // the name of the cluster
	keys    Keys
	ciphers []cipher.AEAD // for the keys that are not empty
}

// newEnvelope returns the envelope of keys that Keys.Check accepts.
func newEnvelope(cluster string, keys Keys) *envelope {
	e := &envelope{label: []byte(cluster), keys: keys}
	for _, key := range keys {
		if len(key) == 0 {
			continue
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			panic("gossip: the size of the keys was checked: " + err.Error())
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic("gossip: AES has the block size of GCM: " + err.Error())
		}
		e.ciphers = append(e.ciphers, aead)
	}
	return e
}

// seal encrypts text with the first key, which must not be empty, and appends the result to to.
func (e *envelope) seal(to, text, authenticated []byte) []byte {
	return e.ciphers[0].Seal(append(to, sealVersion), nil, text, authenticated)
}

// unseal decrypts with whichever key fits.
func (e *envelope) unseal(sealed, authenticated []byte) (text []byte, fits bool) {
	if len(sealed) == 0 || sealed[0] != sealVersion {
		return nil, false
	}
	for _, aead := range e.ciphers {
		text, err := aead.Open(nil, nil, sealed[1:], authenticated)
		if err == nil {
			return text, true
		}
	}
	return nil, false
}

// wrapPacket returns the packet to send for a text of memberlist.
func (e *envelope) wrapPacket(text []byte) ([]byte, error) {
	if e.keys.Sends() {
		text = e.seal(nil, text, e.label)
	}
	return memberlist.AddLabelHeaderToPacket(text, string(e.label))
}

// openPacket returns the text of a packet, if memberlist may see it. A packet that is not
// encrypted may begin with the same byte as an encrypted one.
func (e *envelope) openPacket(packet []byte) ([]byte, error) {
	packet, label, err := memberlist.RemoveLabelHeaderFromPacket(packet)
	if err == nil && label != string(e.label) {
		err = fmt.Errorf("packet of cluster %q", label)
	}
	if err != nil {
		return nil, err
	}
	text, fits := e.unseal(packet, e.label)
	switch {
	case !fits && e.keys.Demands():
		return nil, errors.New("packet is not encrypted with a key of this node")
	case !fits:
		text = packet
	}
	return checkPacket(text)
}

// wrapMessage returns the bytes to send for a message of memberlist on a stream.
func (e *envelope) wrapMessage(text []byte) []byte {
	if !e.keys.Sends() {
		return text
	}
	head := binary.BigEndian.AppendUint32([]byte{typeEncrypted}, uint32(sealSize+len(text)))
	return e.seal(head, text, append(bytes.Clone(head), e.label...))
}

// openStream returns what memberlist may read of the one message on a stream.
func (e *envelope) openStream(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(io.LimitReader(r, maxStreamBytes))
	first, err := in.Peek(1)
	switch {
	case err != nil:
		return nil, err
	case first[0] == typeEncrypted:
		if in, err = e.openSealed(in); err != nil {
			return nil, err
		}
	case e.keys.Demands():
		return nil, errPlain
	}
	return checkStream(in)
}

// openSealed decrypts the message on a stream. It allocates as much as arrives, not as much as
// the message announces.
func (e *envelope) openSealed(in io.Reader) (*bufio.Reader, error) {
	head := make([]byte, 1+4) // type and size
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxStreamBytes {
		return nil, fmt.Errorf("encrypted stream of %d bytes: at most %d are read",
			size, maxStreamBytes)
	}
	if len(e.ciphers) == 0 {
		return nil, errNoKey
	}
	sealed, err := io.ReadAll(io.LimitReader(in, int64(size)))
	switch {
	case err != nil:
		return nil, err
	case len(sealed) < int(size):
		return nil, io.ErrUnexpectedEOF
	}
	text, fits := e.unseal(sealed, append(head, e.label...))
	switch {
	case !fits:
		return nil, errWrongKey
	case len(text) == 0: // io.EOF would make memberlist wait for more
		return nil, errors.New("encrypted stream without a message")
	}
	return bufio.NewReader(bytes.NewReader(text)), nil
}
