package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Config says what the shards are and how this node works on them. N, Prefix and the timers of
// Election must be the same on every node; the rest should be.
type Config struct {
	// N is how many shards there are, at least 1.
	N int
	// Prefix and the number of a shard make the name of its election. Default "shard/".
	Prefix string
	// Election says how this node takes part in the elections. Priority and Takeover must be 0: they
	// would undo what this package does. AwaitCampaign is always set. A node with NotCandidate
	// votes, and works on nothing.
	Election cluster.ElectionConfig
	// Open, if set, loads what a shard needs, right before Work. An error counts as one of Work. It
	// must return when ctx is canceled. As long as it runs, this node leads the shard without work.
	Open func(ctx context.Context, s Shard) error
	// MaxStarts is how many calls of Open run at once. Default 16. If so many run, and none of them
	// ends for half of Hold, the shards that wait go to other nodes, as if Work had failed.
	MaxStarts int
	// Work does what only the owner of a shard may do. It must return when ctx is canceled: at the
	// stop margin before the lease ends, or because the shard is to move. If it returns before, or
	// with an error, another node takes the shard over, and this one rests from the shard: for a
	// second, and twice as long each time, up to a minute. Required.
	Work func(ctx context.Context, s Shard) error

	// Hold is how long a node leads too many before it hands some over, and how long it leads a
	// shard before that one may move. A node that refuses a shard is given none for so long, and ten
	// times as long if it lost one sooner than that. Default 1 min.
	Hold time.Duration
}

// Shard is a shard that this node owns.
type Shard struct {
	Number int // 0 to N-1
	// Leadership is that of this node in the shard's election. Run releases it.
	Leadership *cluster.Leadership
}

// Token issues the next fencing token of this ownership: see cluster.Leadership.NextLSN. Tokens
// of a shard rise from one owner to the next. The error wraps cluster.ErrNotLeader once it is
// over.
func (s Shard) Token() (lsn.LSN, error) { return s.Leadership.NextLSN() }

// withDefaults returns the configuration that holds, or everything that is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("shards config: %w", err)
	}
	c.Prefix = cmp.Or(c.Prefix, "shard/")
	c.Election.AwaitCampaign = true
	c.MaxStarts, c.Hold = cmp.Or(c.MaxStarts, 16), cmp.Or(c.Hold, time.Minute)
	return c, nil
}

func (c Config) validate() (err error) {
	demand := func(holds bool, format string, args ...any) {
		if !holds {
			err = errors.Join(err, fmt.Errorf(format, args...))
		}
	}
	demand(c.Work != nil, "Work is nil: it must be a function")
	demand(c.N > 0, "N is %d: it must be positive", c.N)
	e := c.Election
	demand(e.Priority == 0,
		"Election.Priority is %d: it must be 0, the rank of a node is its priority", e.Priority)
	demand(e.Takeover == 0,
		"Election.Takeover is %s: it must be 0, or shards go back and forth", e.Takeover)
	demand(c.MaxStarts >= 0, "MaxStarts is %d: it must be positive, or 0 for the default", c.MaxStarts)
	demand(c.Hold >= 0, "Hold is %s: it must be positive, or 0 for the default", c.Hold)
	return err
}
