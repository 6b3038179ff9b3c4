package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/bmqelect/bmqelect/internal/base/regular"
)

// peersFile caches the addresses of peers, as a list in JSON. It is a convenience, so
// it is apart from the state: that it cannot be written says nothing about terms.
const peersFile = "PEERS"

// MaxPeers is the most addresses that are kept. Its caller keeps fewer.
const MaxPeers = 256

// maxPeersFile is more than MaxPeers addresses take, in bytes.
const maxPeersFile = 1 << 20

// peers is the cache of addresses; it has a lock of its own, so that nobody who
// asks for a term waits for it.
type peers struct {
	mu    sync.Mutex
	saved []string
}

// SavePeers replaces the cached addresses of peers, which a node that restarts
// tries to join by. The list is copied, and cut after MaxPeers; the same list again
// costs no write. An error changes nothing, and the next call may succeed.
//
// Addresses must be UTF-8 and not empty.
func (s *Store) SavePeers(addresses []string) error {
	addresses = addresses[:min(len(addresses), MaxPeers)]
	for _, address := range addresses {
		if err := checkName("peer", address); err != nil {
			return fmt.Errorf("save peers: %w", err)
		}
	}
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	if slices.Equal(addresses, s.peers.saved) {
		return nil
	}
	if err := writePeers(filepath.Join(s.dir, peersFile), addresses); err != nil {
		return fmt.Errorf("save the addresses of peers: %w", err)
	}
	s.peers.saved = slices.Clone(addresses)
	return nil
}

// writePeers replaces the file as a whole, or leaves the one that is there.
func writePeers(path string, addresses []string) error {
	text, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	f, err := regular.Open(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		if left := os.Remove(temporary); !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
	}
	return err
}

// Peers returns the addresses saved last. The list is the caller's to change.
func (s *Store) Peers() []string {
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return slices.Clone(s.peers.saved)
}

// loadPeers reads the addresses at a start of the node. A file that is damaged is as
// good as none. Addresses of an older program are in next, and move from there to the
// file if that can be written.
func (s *Store) loadPeers(next *state) {
	text, err := regular.Read(filepath.Join(s.dir, peersFile), maxPeersFile)
	if err == nil {
		var saved []string
		if json.Unmarshal(text, &saved) == nil {
			s.peers.saved = saved[:min(len(saved), MaxPeers)]
		}
		next.Peers = nil
		return
	}
	if len(next.Peers) == 0 {
		return
	}
	if moved := s.SavePeers(next.Peers); moved != nil {
		s.peers.saved = next.Peers
		return
	}
	next.Peers = nil
}
