package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/lsn"
)

// Config describes a cluster. New copies it. JSON leaves out what is a function.
type Config struct {
	// Seed fixes every random choice of the run.
	Seed uint64
	// Algorithm is what the nodes run; the zero Algorithm is ours.Elector. Any other has no
	// observers, and reads only the voters, the quorum and the timers of elector.Config.
	Algorithm algorithm.Algorithm `json:"-"`
	// Order has all voters. An algorithm that goes by identifiers prefers the first of them
	// most. nil is the order of Nodes.
	Order []elector.NodeID
	// Nodes are the members, voters and observers, each named once. Required.
	Nodes []NodeConfig
	// Network is how every link behaves until SetFaults says otherwise.
	Network Faults
	// FsyncMin and FsyncMax bound how long a term takes to be durable; each write
	// draws its own. 0 <= FsyncMin <= FsyncMax.
	FsyncMin, FsyncMax time.Duration
	// LinkTimeout is the silence after which an end of a connection gives it up.
	// 0 means twice the inactivity interval, at most 3 s, as in the mesh.
	LinkTimeout time.Duration
	// ProofMax is the most that the proof of a death takes after the dial that was
	// refused. It comes before the link to the next process in any case.
	ProofMax time.Duration
	// Redial is the longest time from when a connection becomes possible to when
	// it is made; each draws its own. 0 means half the inactivity interval, at most 500 ms.
	Redial time.Duration
	// Store is where the store is of an algorithm that has one.
	Store Store
	// Begin, if it names a leader, lets time 0 find that leader established.
	Begin Begin
	// Checks are demanded except for those that the electors' unsafe settings lift
	// anyway. Only forged messages (Inject) are a reason to lift any.
	Checks spec.Checks
	// Observer, if not nil, is called for every event, in order. The event is
	// valid during the call only.
	Observer func(*Event) `json:"-"`
}

// NodeConfig describes one member.
type NodeConfig struct {
	// Elector is the machine's configuration; Self names the node.
	Elector elector.Config
	// ClockRatePPM is how much faster than simulated time the node's clock runs,
	// in parts per million; negative for slower, above -500000.
	ClockRatePPM int64
	// Term is what the node's disk holds before its first boot; 0 for a new disk.
	// Config.Begin overrides it for nodes that are not absent.
	Term lsn.Term
	// Work is the guarded work of the node's application; the zero Work is none.
	Work Work
	// Absent nodes do not start by themselves; Restart starts them.
	Absent bool
}

// Begin is an established leadership to start from. It is reached by an election
// before time 0, so events of negative time are reported.
type Begin struct {
	Leader elector.NodeID // "" for a cold start
	Term   lsn.Term       // at least 1; of all nodes that are not absent; only ours has it
}

// Faults are those of one direction of a link. Probabilities are in parts per
// million, each from 0 to 1,000,000, drawn for every message.
type Faults struct {
	Delay  time.Duration // of every message
	Jitter time.Duration // up to this much more, uniformly; order is kept
	Tail   time.Duration // this much more on the mean, exponentially; order is not kept

	LossPPM int // vanishes

	DuplicatePPM int           // arrives twice, the copy up to ExtraMax later
	ReorderPPM   int           // overtaken: arrives up to ExtraMax later
	ExtraMax     time.Duration // 0 means ten times Delay + Jitter

	LatePPM int           // arrives up to LateMax later, even after its connection is gone
	LateMax time.Duration // 0 means one minute
}

func (f Faults) withDefaults() Faults {
	f.ExtraMax = cmp.Or(f.ExtraMax, 10*(f.Delay+f.Jitter))
	f.LateMax = cmp.Or(f.LateMax, time.Minute)
	return f
}

// first is the configuration of a node that knows the voters.
func (c *Config) first() *elector.Config {
	i := slices.IndexFunc(c.Nodes, func(n NodeConfig) bool { return len(n.Elector.Voters) > 0 })
	return &c.Nodes[max(i, 0)].Elector
}

func (c Config) withDefaults() Config {
	c.Network = c.Network.withDefaults()
	inactive := c.Nodes[0].Elector.Timing.Inactivity()
	c.LinkTimeout = cmp.Or(c.LinkTimeout, min(2*inactive, 3*time.Second))
	c.Redial = cmp.Or(c.Redial, min(inactive/2, 500*time.Millisecond))
	c.Store.Election = cmp.Or(c.Store.Election, time.Second)
	if c.Algorithm.New == nil {
		c.Algorithm = ours.Elector
	}
	if c.Order == nil {
		for _, n := range c.Nodes {
			if !n.Elector.Observer() {
				c.Order = append(c.Order, n.Elector.Self)
			}
		}
	}
	return c
}
