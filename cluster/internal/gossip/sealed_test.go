package gossip

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seal encrypts a text with a key, as a member that does not keep to version 1 may do.
func seal(t *testing.T, key []byte, version byte, text, head []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	sealed := append([]byte{version}, make([]byte, nonceSize)...)
	return gcm.Seal(sealed, sealed[1:], text, append(head, "test"...))
}

// sealStream is what begins an encrypted stream.
func sealStream(t *testing.T, key []byte, version byte, text []byte) []byte {
	t.Helper()
	head := binary.BigEndian.AppendUint32([]byte{typeEncrypted}, uint32(sealSize+len(text)))
	return append(head, seal(t, key, version, text, bytes.Clone(head))...)
}

// TestKeyHolderCrashesNobody, and gets no more past the border than others.
func TestKeyHolderCrashesNobody(t *testing.T) {
	claim := encoded(t, typePushPull, pushPull{Nodes: 1 << 20, Join: true})
	key := keysOf("A")[0]
	texts := map[string]struct {
		version byte
		text    []byte
	}{
		"wrong padding": {0, bytes.Repeat([]byte{0xff}, 16)},
		"empty":         {1, nil},
		"no padding":    {0, nil},
		"claim":         {1, claim},
		"encrypted":     {1, sealStream(t, key, 1, nil)},
	}
	for _, keys := range []string{"A", "A plain", "plain A", "B A"} {
		t.Run(keys, func(t *testing.T) {
			a := start(t, "a", encrypting(keys))
			b := border{"test", keysOf(keys)}
			for name, c := range texts {
				packet := seal(t, key, c.version, c.text, nil)
				require.Error(t, b.checkPacket(labelled(packet)), name)
				stream := sealStream(t, key, c.version, c.text)
				_, err := b.openStream(bytes.NewReader(labelled(stream)))
				require.Error(t, err, name)

				sendPacket(t, a, packet)
				conn := openTo(t, a, stream)
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				_, err = io.ReadAll(conn)
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
			}
			start(t, "c", joining(a.gossipAddr()), encrypting(keys))
			a.requireState(StateAlive, "c")
		})
	}
}

// TestWhatMembersEncryptPasses, and what no key opens is left to memberlist.
func TestWhatMembersEncryptPasses(t *testing.T) {
	ping := []byte{typePing, 0x80}
	exchange := encoded(t, typePushPull, pushPull{Nodes: 1, Join: true})
	for _, keys := range []string{"A", "plain A", "B A", "B"} {
		b := border{"test", keysOf(keys)}
		for _, key := range keysOf("A B") {
			stream := labelled(sealStream(t, key, 1, exchange))
			in, err := b.openStream(bytes.NewReader(stream))
			require.NoError(t, err)
			text, err := io.ReadAll(in)
			require.NoError(t, err)
			require.Equal(t, stream, text)
			require.NoError(t, b.checkPacket(labelled(seal(t, key, 1, ping, nil))))
		}
		require.NoError(t, b.checkPacket(labelled(ping)))
		_, err := b.openStream(bytes.NewReader(labelled(sealStream(t, keysOf("A")[0], 1, exchange)[:40])))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}
