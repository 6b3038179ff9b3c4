package store

import (
	"fmt"
	"slices"
)

// SavePeers replaces the cached addresses of peers, which a node that restarts
// tries to join by. The list is copied; the same list again costs no write.
//
// Addresses must be UTF-8 and not empty. An error that wraps ErrNotDurable is as
// final here as from Persist: what could not write peers cannot write terms.
func (s *Store) SavePeers(addresses []string) error {
	for _, address := range addresses {
		if err := checkName("peer", address); err != nil {
			return fmt.Errorf("save peers: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && slices.Equal(addresses, s.state.Peers) {
		return nil
	}
	next := s.state.clone()
	next.Peers = slices.Clone(addresses)
	return s.commit("save the addresses of peers", next)
}

// Peers returns the addresses saved last. The list is the caller's to change.
func (s *Store) Peers() []string { return slices.Clone(s.current().Peers) }
