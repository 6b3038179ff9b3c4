package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// config is what a process needs to know.
type config struct {
	cluster    cluster.Config
	http       string
	partitions int           // the same for every process, and for its whole life
	grant      time.Duration // the same for every process
	every      time.Duration
}

// parse reads the command line of a process.
func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	node := flags.String("node", "a", "name of this node")
	voters := flags.String("voters", "a", "names of all nodes, the same for every node")
	join := flags.String("join", "", "gossip `addresses` of other nodes, separated by commas")
	flags.StringVar(&c.cluster.DataDir, "data", "", "`directory` for this node's files (default: a temporary one, named after it)")
	flags.StringVar(&c.cluster.GossipAddr, "gossip", "127.0.0.1:0", "gossip `address` of this node")
	flags.StringVar(&c.cluster.MeshAddr, "mesh", "127.0.0.1:0", "mesh `address` of this node")
	flags.StringVar(&c.http, "http", "127.0.0.1:0", "`address` at which workers ask this node")
	flags.IntVar(&c.partitions, "partitions", 12, "how many there are, the same for every node")
	flags.DurationVar(&c.grant, "grant", 3*time.Second, "how long a worker may go on without an answer, the same for every node")
	flags.DurationVar(&c.every, "every", time.Second, "`period` of the work")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if c.partitions < 1 || c.grant < minGrant || c.every <= 0 {
		return config{}, fmt.Errorf("want at least 1 partition, a grant of at least %s, and a period of work above 0", minGrant)
	}
	c.cluster.Node = cluster.NodeID(*node)
	for name := range strings.SplitSeq(*voters, ",") {
		c.cluster.Voters = append(c.cluster.Voters, cluster.NodeID(name))
	}
	if *join != "" {
		c.cluster.Join = strings.Split(*join, ",")
	}
	if c.cluster.DataDir == "" {
		c.cluster.DataDir = filepath.Join(os.TempDir(), "coordinator-"+*node)
	}
	// Who cannot coordinate does not stand: that is what Run says.
	c.cluster.Election.AwaitCampaign = true
	return c, nil
}

// minGrant leaves time to ask five times within a grant.
const minGrant = 100 * time.Millisecond

// drained is nil unless the file is there: an operator's way to let another node
// lead, for as long as wanted.
func drained(file string) error {
	switch _, err := os.Stat(file); {
	case err == nil:
		return fmt.Errorf("drained: %s is there", file)
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return err
	}
}
