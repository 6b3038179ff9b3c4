package gossip

import (
	"bytes"
	"fmt"
	"slices"
)

// Keys encrypt gossip by AES-256-GCM: the first what this node sends, and each decrypts
// what it gets. An empty one stands for no encryption: as the first nothing is encrypted, and
// after it what is not encrypted is accepted, too. No keys are one empty one. A cluster
// goes from one key, or from none, to another without a gap if all nodes have the new one
// behind the first before any has it as the first, and as the first before any drops the old one.
type Keys [][]byte

// KeySize is that of a key that is not empty, in bytes.
const KeySize = 32

// Check reports what is wrong with keys. The error does not show them.
func (k Keys) Check() error {
	for i, key := range k {
		if len(key) != 0 && len(key) != KeySize {
			return fmt.Errorf("gossip key %d has %d bytes; want %d, or 0 for no encryption",
				i, len(key), KeySize)
		}
	}
	return nil
}

// Sends reports whether what is sent is encrypted.
func (k Keys) Sends() bool { return len(k) > 0 && len(k[0]) > 0 }

// Demands reports whether nothing is accepted that is not encrypted.
func (k Keys) Demands() bool { return len(k) > 0 && !k.has(nil) }

// Encryption says what becomes of gossip: none, accepted (it is sent without, but may come with
// encryption), preferred (sent with, and may come without) or required.
func (k Keys) Encryption() string {
	switch {
	case k.Demands():
		return "required"
	case k.Sends():
		return "preferred"
	case len(k) > 1:
		return "accepted"
	}
	return "none"
}

func (k Keys) has(key []byte) bool {
	return slices.ContainsFunc(k, func(other []byte) bool { return bytes.Equal(key, other) })
}

func (k Keys) equal(other Keys) bool { return slices.EqualFunc(k, other, bytes.Equal) }

// SetKeys replaces the keys; members stay. It reports whether they are others than before. The
// error is that of Check; then the keys before are in use.
func (g *Gossip) SetKeys(keys Keys) (changed bool, err error) {
	if err := keys.Check(); err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if keys.equal(g.Keys()) {
		return false, nil
	}
	g.transport.envelope.Store(newEnvelope(g.cfg.Cluster, keys))
	return true, nil
}

// Keys returns those in use.
func (g *Gossip) Keys() Keys { return g.transport.envelope.Load().keys }
