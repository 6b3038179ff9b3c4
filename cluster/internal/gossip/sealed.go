package gossip

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// What is encrypted, as memberlist has it: a version, a nonce, the text, and a tag.
const (
	sealVersion = 1 // version 0 pads the text: memberlist panics if the padding is wrong
	nonceSize   = 12
	tagSize     = 16
	sealSize    = 1 + nonceSize + tagSize // what it adds to a text
)

var errSealVersion = fmt.Errorf("encryption is not of version %d", sealVersion)

// unseal decrypts what memberlist would decrypt, if a key fits. The key makes nobody
// trustworthy: a text passes the border as one that is not encrypted does.
func (b border) unseal(sealed, authenticated []byte) (text []byte, fits bool) {
	if len(sealed) < sealSize || sealed[0] > sealVersion {
		return nil, false
	}
	nonce, rest := sealed[1:1+nonceSize], sealed[1+nonceSize:]
	for _, key := range b.keys.real() {
		block, err := aes.NewCipher(key)
		if err != nil {
			continue // never: Keys.Check knows the size
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			continue // never: it is AES
		}
		if text, err = gcm.Open(nil, nonce, rest, authenticated); err == nil {
			return text, true
		}
	}
	return nil, false
}

// openSealed returns what of an encrypted stream memberlist may read: all, unless it is
// known to be bad. If no key fits memberlist tells the other end.
func (b border) openSealed(in io.Reader) (io.Reader, error) {
	head := make([]byte, 1+4) // type and size
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size <= sealSize || size > maxStreamBytes {
		return nil, fmt.Errorf("encrypted stream of %d bytes: %d to %d are read",
			size, sealSize+1, maxStreamBytes)
	}
	sealed, err := io.ReadAll(io.LimitReader(in, int64(size))) // sets aside what comes, not size
	switch {
	case err != nil:
		return nil, err
	case len(sealed) < int(size):
		return nil, io.ErrUnexpectedEOF
	case sealed[0] != sealVersion:
		return nil, errSealVersion
	}
	if text, fits := b.unseal(sealed, append(slices.Clone(head), b.label...)); fits {
		if _, err := openText(bufio.NewReader(bytes.NewReader(text))); err != nil {
			return nil, fmt.Errorf("encrypted: %w", err)
		}
	}
	return io.MultiReader(bytes.NewReader(head), bytes.NewReader(sealed)), nil
}
