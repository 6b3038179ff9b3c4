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

// What is encrypted is a version, and what cipher.NewGCMWithRandomNonce makes of the text.
const (
	sealVersion = 1
	sealSize    = 1 + 12 + 16 // what encryption adds: version, nonce and tag
)

// Why the text of an other end cannot be read.
var (
	errNoKey    = errors.New("the other end encrypts gossip, and this node has no key")
	errWrongKey = errors.New("the other end encrypts gossip with a key that this node does not have")
	errPlain    = errors.New("the other end does not encrypt gossip, and this node does")
)

// envelope is what the transport puts around memberlist's text: the name of the cluster, and
// encryption. So memberlist has no keys, and they can change while it runs. It is not changed
// in place.
type envelope struct {
	label   []byte // the name of the cluster
	keys    Keys
	ciphers []cipher.AEAD // of the keys that are not empty
}

// newEnvelope returns an envelope with keys that were checked.
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

// seal appends the encrypted text to to. The first key must not be empty.
func (e *envelope) seal(to, text, authenticated []byte) []byte {
	return e.ciphers[0].Seal(append(to, sealVersion), nil, text, authenticated)
}

// unseal decrypts with the key that fits, if there is one.
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

// wrapPacket returns what is sent for a packet of memberlist.
func (e *envelope) wrapPacket(text []byte) ([]byte, error) {
	if e.keys.Sends() {
		text = e.seal(nil, text, e.label)
	}
	return memberlist.AddLabelHeaderToPacket(text, string(e.label))
}

// openPacket returns the text of a packet that memberlist may see. One that is not encrypted
// can begin as an encrypted one does.
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

// wrapMessage returns what is sent for a message of memberlist on a stream.
func (e *envelope) wrapMessage(text []byte) []byte {
	if !e.keys.Sends() {
		return text
	}
	head := binary.BigEndian.AppendUint32([]byte{typeEncrypted}, uint32(sealSize+len(text)))
	return e.seal(head, text, append(bytes.Clone(head), e.label...))
}

// openStream returns what memberlist may read of a stream, which is one message.
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

// openSealed decrypts the message on a stream.
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
	sealed, err := io.ReadAll(io.LimitReader(in, int64(size))) // sets aside what comes, not size
	switch {
	case err != nil:
		return nil, err
	case len(sealed) < int(size):
		return nil, io.ErrUnexpectedEOF
	}
	text, fits := e.unseal(sealed, append(head, e.label...))
	if !fits {
		return nil, errWrongKey
	}
	return bufio.NewReader(bytes.NewReader(text)), nil
}
