package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	// peersFile caches the addresses of peers, as a list in JSON. It is a convenience, and
	// apart from the state: a failure to write it must not end the node's votes.
	peersFile = "PEERS"
	// maxPeersFile is more than MaxPeers addresses take, in bytes.
	maxPeersFile = 1 << 20
)

// MaxPeers is how many addresses are kept at most. The caller saves fewer.
const MaxPeers = 256

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
	s.peersMu.Lock()
	defer s.peersMu.Unlock()
	if slices.Equal(addresses, s.peers) {
		return nil
	}
	text, err := json.Marshal(addresses)
	path := filepath.Join(s.dir, peersFile)
	temporary := path + ".new"
	if left := os.Remove(temporary); err == nil && !errors.Is(left, fs.ErrNotExist) {
		err = left // it may be of another kind, such as a FIFO: opening that would wait
	}
	if err == nil {
		err = os.WriteFile(temporary, text, 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // it takes room on a disk that may be full
		return fmt.Errorf("save the addresses of peers: %w", err)
	}
	s.peers = slices.Clone(addresses)
	return nil
}

// Peers returns the addresses saved last. The list is the caller's to change.
func (s *Store) Peers() []string {
	s.peersMu.Lock()
	defer s.peersMu.Unlock()
	return slices.Clone(s.peers)
}

// SaveIdentities makes durable which data directories a node has had, by their identities.
// The caller must not change the slice afterwards. An error is final, like one of Persist.
func (s *Store) SaveIdentities(node elector.NodeID, all []uuid.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state.Load().clone()
	if next.Identities == nil {
		next.Identities = map[elector.NodeID][]uuid.UUID{}
	}
	next.Identities[node] = all
	return s.commit("save the identities of a member", next, nil)
}

// Identities returns the identities that were saved, by node. The caller must not change
// them.
func (s *Store) Identities() map[elector.NodeID][]uuid.UUID { return s.state.Load().Identities }

// loadPeers reads the addresses. A damaged file counts as none.
func (s *Store) loadPeers() {
	text, err := limit.ReadFile(filepath.Join(s.dir, peersFile), maxPeersFile)
	var saved []string
	if err == nil && json.Unmarshal(text, &saved) == nil {
		s.peers = saved[:min(len(saved), MaxPeers)]
	}
}
