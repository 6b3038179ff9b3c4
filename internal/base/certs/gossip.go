package certs

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	gossipFile = "gossip.key"   // keys of gossip, one a line; the first encrypts, all decrypt
	plainFile  = "accept-plain" // if it is there, members without TLS are accepted

	plainWord = "plain" // stands for no encryption, among the keys

	gossipKeySize = 32 // bytes: AES-256
	maxGossipKeys = 8
)

// GossipKey is a key of gossip. An empty one stands for gossip that is not encrypted. No
// verb of package fmt shows it.
type GossipKey []byte

// NewGossipKey makes a key.
func NewGossipKey() GossipKey {
	key := make(GossipKey, gossipKeySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// ParseGossipKey reads a key as String writes it. The error does not show it.
func ParseGossipKey(text string) (GossipKey, error) {
	if text == plainWord {
		return GossipKey{}, nil
	}
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(key) != gossipKeySize {
		return nil, fmt.Errorf("it is neither %d bytes in base64 nor the word %q",
			gossipKeySize, plainWord)
	}
	return key, nil
}

// Text is the key as a file and a request have it.
func (k GossipKey) Text() string {
	if len(k) == 0 {
		return plainWord
	}
	return base64.StdEncoding.EncodeToString(k)
}

// Format hides the key.
func (k GossipKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("a gossip key")) }

// GossipKeys reads the keys of a directory: the first encrypts, and each decrypts. If there
// is no file, there are none, and gossip is not encrypted.
func GossipKeys(dir string) ([]GossipKey, error) {
	path := filepath.Join(dir, gossipFile)
	text, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []GossipKey
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, err := ParseGossipKey(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// GossipStep is a step of a rotation of the keys of gossip. All nodes take one before any
// takes the next: then they understand each other all the time.
type GossipStep string

// The steps, in order. Each can be repeated.
const (
	GossipAdd    GossipStep = "add"    // decrypt with the key, too
	GossipUse    GossipStep = "use"    // encrypt with it
	GossipRemove GossipStep = "remove" // all others
)

// GossipSteps are all steps, in order.
var GossipSteps = []GossipStep{GossipAdd, GossipUse, GossipRemove}

// ChangeGossipKeys takes a step in a directory's file.
func ChangeGossipKeys(dir string, step GossipStep, key GossipKey) error {
	keys, err := GossipKeys(dir)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		keys = []GossipKey{{}}
	}
	same := func(k GossipKey) bool { return bytes.Equal(k, key) }
	known := slices.ContainsFunc(keys, same)
	switch {
	case step == GossipAdd && known:
		return nil
	case step == GossipAdd && len(keys) >= maxGossipKeys:
		return fmt.Errorf("%s has %d keys, the most that are taken: remove those that no node "+
			"encrypts with", filepath.Join(dir, gossipFile), len(keys))
	case step == GossipAdd:
		keys = append(keys, key)
	case !slices.Contains(GossipSteps, step):
		return step.Problem()
	case !known:
		return fmt.Errorf("%s does not have that key: add it first", filepath.Join(dir, gossipFile))
	case step == GossipUse:
		keys = append([]GossipKey{key}, slices.DeleteFunc(keys, same)...)
	case !same(keys[0]):
		return fmt.Errorf("%s encrypts with another key: use that one first",
			filepath.Join(dir, gossipFile))
	default:
		keys = keys[:1]
	}
	return writeGossipKeys(dir, keys)
}

func writeGossipKeys(dir string, keys []GossipKey) error {
	var text bytes.Buffer
	for _, key := range keys {
		text.WriteString(key.Text() + "\n")
	}
	return writeFiles(dir, map[string][]byte{gossipFile: text.Bytes()})
}

// Problem reports what is no step.
func (s GossipStep) Problem() error {
	if slices.Contains(GossipSteps, s) {
		return nil
	}
	return fmt.Errorf("step is %.40q, but must be one of %q", string(s), GossipSteps)
}

// NextGossipKey returns the key that the next rotation of a CA's directory leads to: the last
// one there if a rotation has added it and stopped (again), so that repeats add no more keys, or
// else a new one.
func NextGossipKey(dir string) (key GossipKey, again bool, err error) {
	keys, err := GossipKeys(dir)
	if err != nil {
		return nil, false, err
	}
	if n := len(keys); n > 1 && len(keys[n-1]) > 0 {
		return keys[n-1], true, nil
	}
	return NewGossipKey(), false, nil
}

// ChangeIssuedGossipKeys takes a step in the files of the CA's directory and of all nodes'
// below it, so that what is copied from there is up to date. While nodes begin to use a key
// the files stay as they are, since all nodes decrypt with it and with the one before: so the
// first key there is the old one until the key is alone.
func ChangeIssuedGossipKeys(dir string, step GossipStep, key GossipKey) error {
	nodes, err := issuedBefore(dir)
	if err != nil || step == GossipUse {
		return err
	}
	change := func(dir string) error {
		if step == GossipRemove {
			return writeGossipKeys(dir, []GossipKey{key})
		}
		return ChangeGossipKeys(dir, step, key)
	}
	err = change(dir)
	for _, node := range nodes {
		if strings.HasPrefix(node, operators) {
			continue // operators take no part in gossip
		}
		err = errors.Join(err, change(filepath.Join(dir, node)))
	}
	return err
}

// readShared reads, from a CA's directory, the files other than certificates that every node gets.
func readShared(dir string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, name := range []string{gossipFile, plainFile, namesFile} {
		text, err := limit.ReadFile(filepath.Join(dir, name), maxFile)
		if err == nil {
			all[name] = text
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return all, nil
}

// AcceptPlain makes Issue tell nodes to accept members without TLS, too, and not to encrypt
// gossip yet if the CA of a directory is new: a cluster without TLS moves to it in this way.
func AcceptPlain(dir string) error {
	return writeFiles(dir, map[string][]byte{plainFile: nil})
}

// AcceptsPlain reports whether a directory says that members without TLS are accepted.
func AcceptsPlain(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, plainFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
