package migrate

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster"
)

// service has work that is started and stopped, and answers questions.
type service struct {
	begin func() (stop func())
	read  func(key string) string
}

// follow does the work whenever this node leads.
func (s *service) follow(ctx context.Context, e *cluster.Election) error {
	var stop func()
	// snippet: leader-ch
	err := e.Run(ctx, cluster.Callbacks{
		WorkElsewhere: true, // OnStartedLeading begins the work, and returns
		OnStartedLeading: func(context.Context, *cluster.Leadership) error {
			stop = s.begin()
			return nil
		},
		OnStoppedLeading: func(*cluster.Leadership) { stop() }, // returns when it has stopped
	})
	// end
	return err
}

// get answers with what no other leader can have changed before the call.
func (s *service) get(ctx context.Context, l *cluster.Leadership, key string) (string, error) {
	// snippet: verify-leader
	value := s.read(key)
	if err := l.Confirm(ctx); err != nil {
		return "", err // wraps cluster.ErrNotLeader if the leadership is over
	}
	return value, nil
	// end
}
