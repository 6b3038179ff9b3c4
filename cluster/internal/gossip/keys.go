package gossip

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
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

// real are the keys that are not empty.
func (k Keys) real() Keys {
	return slices.DeleteFunc(slices.Clone(k), func(key []byte) bool { return len(key) == 0 })
}

// ring is a new keyring of memberlist.
func (k Keys) ring() (*memberlist.Keyring, error) {
	keys := k.real()
	if len(keys) == 0 {
		return memberlist.NewKeyring(nil, nil)
	}
	return memberlist.NewKeyring(keys, keys[0])
}

// change turns a ring that is in use with old keys into one of k, if memberlist can do so:
// whether anything is encrypted is fixed when it starts. To remove a key writes to memory that
// readers hold, unless it is the last one.
func (k Keys) change(ring *memberlist.Keyring, old Keys) (done bool) {
	keys := k.real()
	if k.Sends() != old.Sends() || k.Demands() != old.Demands() || len(keys) == 0 {
		return false
	}
	for _, key := range keys {
		if ring.AddKey(key) != nil {
			return false
		}
	}
	if ring.UseKey(keys[0]) != nil {
		return false
	}
	have := slices.Clone(ring.GetKeys())
	for i := len(have) - 1; i >= 0 && !k.has(have[i]); i-- {
		if ring.RemoveKey(have[i]) != nil {
			return false
		}
	}
	return len(ring.GetKeys()) == len(keys)
}

// SetKeys replaces the keys; members stay. It reports whether they are others than before. The
// error is that of Check, or says why it cannot be done; then the keys before are in use.
func (g *Gossip) SetKeys(keys Keys) (changed bool, err error) {
	if err := keys.Check(); err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now.Load()
	if g.left || keys.equal(now.keys) {
		return false, nil
	}
	// While they change memberlist may decrypt with both.
	both := slices.Concat(keys, now.keys)
	g.transport.keys.Store(&both)
	if keys.change(now.ring, now.keys) {
		g.now.Store(&session{now.list, now.events, now.ring, keys})
		g.transport.keys.Store(&keys)
		return true, nil
	}
	err = g.reopen(keys)
	return err == nil, err
}

// reopen goes on with another memberlist on the same sockets. To the others this node is
// one that was restarted quickly; its own members are asked again.
func (g *Gossip) reopen(keys Keys) error {
	old := g.now.Load()
	old.events.stale.Store(true)
	g.members.ask(time.Now()) // before the new one can hear of any
	next, err := g.newSession(keys)
	if err != nil {
		g.transport.keys.Store(&old.keys)
		g.members.ask(time.Time{})
		old.events.stale.Store(false)
		return fmt.Errorf("change the encryption of gossip: %w", err)
	}
	g.now.Store(next)
	_ = old.list.Shutdown() // never fails: the sockets stay
	g.transport.keys.Store(&keys)
	wake(g.members.join)
	return nil
}

// session is a memberlist, with the keys that it has.
type session struct {
	list   *memberlist.Memberlist
	events *events
	ring   *memberlist.Keyring
	keys   Keys
}

// newSession starts a memberlist.
func (g *Gossip) newSession(keys Keys) (*session, error) {
	ring, err := keys.ring()
	if err != nil {
		return nil, err
	}
	s := &session{events: &events{members: g.members}, ring: ring, keys: keys}
	s.list, err = memberlist.Create(g.libraryConfig(s))
	return s, err
}

// Keys returns those in use.
func (g *Gossip) Keys() Keys { return g.now.Load().keys }

// mark stands for a name in the hello of a stream: only who has the key can tell for which.
func mark(key []byte, name string) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(name)) // never fails
	return sum.Sum(nil)[:markSize]
}

// refusals say in words for operators what memberlist says when keys do not fit.
var refusals = []string{
	"remote error: remote state is encrypted and encryption is not configured", notEncrypted,
	"encryption is configured but remote state is not encrypted", notEncrypted,
	"remote state is encrypted and encryption is not configured",
	"the other end encrypts gossip, and this node has no key",
	"no installed keys could decrypt the message",
	"the other end encrypts gossip with a key that this node does not have",
}

const notEncrypted = "the other end does not encrypt gossip, and this node does"
