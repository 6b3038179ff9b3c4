package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Open returns the election of that name. If it is not open, it is opened with the configuration
// that its prefix has in Config.Prefixes. From then on it stays open until it is closed, also if it
// was open because another voter had asked for it. Without a prefix it must be open: the error
// wraps ErrNotOpen otherwise. Other errors are those of Election.
func (n *Node) Open(name string) (*Election, error) {
	for end := time.Now().Add(loop.OpenTime); ; time.Sleep(loop.OpenTime / 1000) {
		p, err := n.loop.Lookup(name, true)
		if err == nil {
			return &Election{n, p}, nil
		}
		prefix := n.cfg.prefix(name)
		if errors.Is(err, ErrNotOpen) && prefix == "" {
			err = fmt.Errorf("the name must begin with one of the configured prefixes (%s): %w",
				cmp.Or(words.List(slices.Sorted(maps.Keys(n.cfg.Prefixes))), "there are none"), err)
		}
		if prefix == "" || !errors.Is(err, ErrNotOpen) {
			return nil, fmt.Errorf("open election %q: %w", name, err)
		}
		cfg := n.cfg.Prefixes[prefix]
		cfg.Priority = cfg.Spread(name, n.cfg.Node)
		e, err := n.Election(name, cfg)
		// It may be open since a moment ago, or be opened or closed at this moment.
		if !errors.Is(err, ErrOpen) || time.Now().After(end) {
			return e, err
		}
	}
}

// Shut keeps messages of other nodes from opening an election on this node for a minute, as Close
// does, if it is not open. Whoever closes an election on all nodes calls it where it is not open: a
// message may be on its way that would open it after it was closed everywhere else.
func (n *Node) Shut(name string) { n.loop.Shut(name) }

func (c Config) checkPrefixes(ps *problems) {
	for _, prefix := range slices.Sorted(maps.Keys(c.Prefixes)) {
		field := fmt.Sprintf("Prefixes[%s]", prefix)
		if netmesh.NameProblem(prefix) != "" {
			ps.add(field, strconv.Quote(prefix), "1 to %d bytes without spaces", netmesh.MaxNameLength)
		}
		var own problems
		c.checkElection(c.Prefixes[prefix].withDefaults(), field+".", &own)
		for _, p := range own {
			if p.Field != "Voters" && p.Field != "Node" { // they are said already
				*ps = append(*ps, p)
			}
		}
	}
	if c.PrefixLimit < 0 {
		ps.add("PrefixLimit", strconv.Itoa(c.PrefixLimit), "0 for the default, or more")
	}
	if c.PrefixIdle < time.Second {
		ps.add("PrefixIdle", c.PrefixIdle.String(), "0 for the default, or at least 1s")
	}
}

// prefix returns the longest of Prefixes with which the name begins; "" if there is none.
func (c Config) prefix(name string) (longest string) {
	for prefix := range c.Prefixes {
		if len(prefix) > len(longest) && strings.HasPrefix(name, prefix) {
			longest = prefix
		}
	}
	return longest
}

// prefixed returns the function by which the loop learns how to take part in an election whose name
// has one of Prefixes; nil if there are none.
func (c Config) prefixed() func(name string) (loop.Setup, bool) {
	if len(c.Prefixes) == 0 {
		return nil
	}
	setups := map[string]loop.Setup{}
	for prefix, e := range c.Prefixes {
		setups[prefix] = c.setup(e.withDefaults())
	}
	return func(name string) (loop.Setup, bool) {
		prefix := c.prefix(name)
		s, known := setups[prefix]
		s.Elector.Priority = c.Prefixes[prefix].Spread(name, c.Node)
		return s, known
	}
}

// Spread returns the priority for a node in one of many elections: Priority or, where that and
// Takeover are 0, Rendezvous, which spreads the leaders over the nodes. With Takeover it would move
// leaders.
func (e ElectionConfig) Spread(name string, node NodeID) int {
	if e.Priority == 0 && e.Takeover == 0 {
		return Rendezvous(name, node)
	}
	return e.Priority
}

// Rendezvous is the weight of a node in rendezvous hashing: the node of the highest one comes first
// in the election of that name. As a priority it spreads the leaders of many elections over the
// nodes, and those of a dead node over the others. It has 31 bits, so that it is a priority on
// every machine, and the same in every version: nodes of two versions must agree.
func Rendezvous(group string, node NodeID) int {
	fnv1a := fnv.New64a()
	_, _ = fnv1a.Write([]byte(group + "\x00" + string(node))) // never fails
	h := fnv1a.Sum64()
	// The last bytes of FNV hardly change its high bits. This is the finalizer of MurmurHash3.
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return int(h >> 33)
}
