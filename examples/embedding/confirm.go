package embedding

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster"
)

// Store is kept in memory by the leader.
type Store struct{ read func(key string) string }

// snippet: confirm
func (s *Store) Get(ctx context.Context, l *cluster.Leadership, key string) (string, error) {
	value := s.read(key)
	if err := l.Confirm(ctx); err != nil {
		return "", err // another node may lead: its value may be newer
	}
	return value, nil
}

// end
