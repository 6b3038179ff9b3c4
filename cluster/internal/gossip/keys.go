package gossip

import (
	"bytes"
	"fmt"
	"slices"
)

// Keys encrypt gossip by AES-256-GCM. The first key encrypts what this node sends; each of
// them decrypts what it receives. An empty key stands for no encryption: if it is the first,
// this node does not encrypt, and if it is another, this node also accepts what is not
// encrypted. No keys mean one empty key.
//
// A cluster changes its key without a gap if all nodes add the new key behind the first one
// before any node makes it the first, and all nodes make it the first before any node
// removes the old one.
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

// Encryption returns none, accepted (this node sends without encryption, and receives both),
// preferred (it sends with encryption, and receives both) or required.
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

// SetKeys replaces the keys, and reports whether they changed. Members stay. The error is that
// of Check; the old keys stay in use then.
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

// Keys returns the keys in use.
func (g *Gossip) Keys() Keys { return g.transport.envelope.Load().keys }
