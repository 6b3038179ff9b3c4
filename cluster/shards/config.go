package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Config says what the shards are and how this node works on them. Names, N, Prefix and the timers
// of Election must be the same on every node; the rest should be.
type Config struct {
	// N is the number of shards, which are named 0 to N-1. Names names them instead. One of the two
	// is required.
	N     int
	Names []string
	// Prefix and the name of a shard make the name of its election. Default "shard/".
	Prefix string
	// Election says how this node takes part in the elections. Priority and Takeover must be 0: they
	// would undo what this package does. AwaitCampaign is always set. A node with NotCandidate
	// votes, and works on nothing.
	Election cluster.ElectionConfig
	// Open, if set, loads what a shard needs, right before Work. An error counts as one of Work.
	Open func(ctx context.Context, s Shard) error
	// MaxStarts is how many calls of Open run at once. Default 16.
	MaxStarts int
	// Work does what only the owner of a shard may do. It must return when ctx is canceled: at the
	// stop margin before the lease ends, or because the shard is to move. If it returns before, or
	// with an error, another node takes the shard over, and this one rests from the shard: for a
	// second, and twice as long each time, up to a minute. Required.
	Work func(ctx context.Context, s Shard) error

	// Margin is how many shards more than the least loaded node a node may lead for good, at least
	// 2. Default a tenth of an equal share, at least 2.
	Margin int
	// Hold is how long a node leads too many before it hands some over, and how long it leads a
	// shard before that one may move. A node that refuses a shard is given none for so long, and ten
	// times as long if it lost one sooner than that. Default 1 min.
	Hold time.Duration
	// MaxMoves is how many shards a second a node hands over at most. None is handed over while
	// those before are still on their way. Default 10.
	MaxMoves int
	// Logger gets a line when a node begins and ends to hand shards over. Default: none.
	Logger hclog.Logger
}

// Shard is a shard that this node owns.
type Shard struct {
	Name   string
	Number int // its index in Config.Names, or 0 to N-1
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
	for i := range c.N {
		c.Names = append(c.Names, strconv.Itoa(i))
	}
	c.Prefix = cmp.Or(c.Prefix, "shard/")
	c.Election.AwaitCampaign = true
	if e := &c.Election; e.Timing == (elector.Timing{}) { // as package cluster does
		e.Timing = elector.Article()
		if e.QoS != (detector.QoS{}) {
			e.Timing = elector.ForQoS(e.QoS)
		}
	}
	c.MaxStarts, c.MaxMoves = cmp.Or(c.MaxStarts, 16), cmp.Or(c.MaxMoves, 10)
	c.Hold = cmp.Or(c.Hold, time.Minute)
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

func (c Config) validate() (err error) {
	demand := func(holds bool, format string, args ...any) {
		if !holds {
			err = errors.Join(err, fmt.Errorf(format, args...))
		}
	}
	demand(c.Work != nil, "Work is nil: it must be a function")
	demand((c.N > 0) != (len(c.Names) > 0),
		"N is %d and Names has %d names: one of the two must say which shards there are",
		c.N, len(c.Names))
	seen := map[string]bool{}
	for i, name := range c.Names {
		demand(!seen[name], "Names[%d] is %q: names must differ", i, name)
		seen[name] = true
	}
	e := c.Election
	demand(e.Priority == 0,
		"Election.Priority is %d: it must be 0, the rank of a node is its priority", e.Priority)
	demand(e.Takeover == 0,
		"Election.Takeover is %s: it must be 0, or shards go back and forth", e.Takeover)
	demand(c.Margin == 0 || c.Margin >= 2, "Margin is %d: it must be at least 2, or 0 for the default",
		c.Margin)
	demand(c.MaxStarts >= 0, "MaxStarts is %d: it must be positive, or 0 for the default", c.MaxStarts)
	demand(c.MaxMoves >= 0, "MaxMoves is %d: it must be positive, or 0 for the default", c.MaxMoves)
	demand(c.Hold >= 0, "Hold is %s: it must be positive, or 0 for the default", c.Hold)
	return err
}
