// Fencing-sql is a service with several copies. Only the leader writes to a SQL table.
// In the folder examples, try it alone, or in three terminals; then kill or pause (Ctrl-Z)
// the one that writes:
//
//	go run ./fencing-sql
//
//	go run ./fencing-sql -voters a,b,c -node a -gossip 127.0.0.1:7410
//	go run ./fencing-sql -voters a,b,c -node b -join 127.0.0.1:7410
//	go run ./fencing-sql -voters a,b,c -node c -join 127.0.0.1:7410
//
// A context that ends in time is not enough. A process may be paused after it has
// looked at it, for longer than any lease: by its garbage collector, its hypervisor,
// a slow disk. When it wakes, it writes, although another node leads by then. So the
// leader sends a token (NextLSN) with each write, and the table keeps the newest token
// that it has seen and refuses those that go backwards. See write for the
// leader's side and Table.Write for the table's.
//
// To check first and write then is wrong, for the same reason: another leader may write
// between the two. The check belongs into the statement that writes. If a change
// takes several statements, let that one be the first of their transaction: the
// row stays locked until the end.
//
// Two things to know. The table learns of a new leader by its first write:
// a leader that decides by what it reads writes before it reads. And the fence
// remembers terms as long as the row lives: if every node has lost its data
// directory, terms begin again and the row must be made again.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

const (
	row    = "jobs"
	period = time.Second // of the writes
	grace  = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := hclog.New(&hclog.LoggerOptions{})
	if err := run(ctx, os.Args[1:], log); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Error("end", "error", err)
		os.Exit(1)
	}
}

// run writes to the table while this node leads, until ctx ends.
func run(ctx context.Context, args []string, log hclog.Logger) error {
	cfg, file, err := parse(args)
	if err != nil {
		return err
	}
	log = log.With("node", cfg.Node)
	table, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer table.db.Close()
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	log.Info("started", "gossip", node.Status().GossipAddr)
	err = node.Default().Run(ctx, callbacks(table, log))
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(err, node.Close(ctx))
}

// callbacks write at every tick of a leadership. Its ctx ends before another node
// leads.
func callbacks(table *Table, log hclog.Logger) cluster.Callbacks {
	return cluster.Callbacks{OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
		ticks := time.NewTicker(period)
		defer ticks.Stop()
		for ctx.Err() == nil {
			token, err := l.NextLSN()
			if err == nil {
				write(ctx, token, table, log)
			}
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
		}
		return nil
	}}
}

// write is the leader's side: it sends the token along, and tells a refusal from other errors.
func write(ctx context.Context, token lsn.LSN, table *Table, log hclog.Logger) {
	err := table.Write(ctx, token, row, "written in term "+token.Term.String())
	var stale *lsn.StaleError
	switch {
	case errors.As(err, &stale):
		log.Warn("refused: a newer leader has written", "token", stale.Got, "newest", stale.Newest)
	case err != nil:
		log.Error("not written", "token", token, "error", err)
	default:
		log.Info("written", "token", token)
	}
}

// open opens the database file and makes the table and its row.
func open(ctx context.Context, file string) (*Table, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	table, err := OpenTable(ctx, db)
	if err == nil {
		err = table.Create(ctx, row)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, errors.Join(err, db.Close()))
	}
	return table, nil
}

// parse reads the command line: this node, and the database file.
func parse(args []string) (cfg cluster.Config, file string, err error) {
	flags := flag.NewFlagSet("fencing-sql", flag.ContinueOnError)
	flags.StringVar(&file, "db", filepath.Join(os.TempDir(), "fencing.db"),
		"database `file`, the same for every node")
	node := flags.String("node", "a", "name of this node")
	voters := flags.String("voters", "a", "names of all nodes, the same for every node")
	join := flags.String("join", "", "gossip `address` of another node")
	flags.StringVar(&cfg.DataDir, "data", "",
		"`directory` for this node's state (default: beside the database)")
	flags.StringVar(&cfg.GossipAddr, "gossip", "127.0.0.1:0", "gossip `address` of this node")
	flags.StringVar(&cfg.MeshAddr, "mesh", "127.0.0.1:0", "mesh `address` of this node")
	if err := flags.Parse(args); err != nil {
		return cfg, "", err
	}
	cfg.Node = cluster.NodeID(*node)
	for name := range strings.SplitSeq(*voters, ",") {
		cfg.Voters = append(cfg.Voters, cluster.NodeID(name))
	}
	if *join != "" {
		cfg.Join = []string{*join}
	}
	cfg.Election.AwaitCampaign = true // who does not write does not lead
	if cfg.DataDir == "" {
		cfg.DataDir = file + "." + *node
	}
	return cfg, file, nil
}
