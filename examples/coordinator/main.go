// Coordinator is a service whose processes share out partitions among themselves:
// the leader assigns each to one process that is alive, and every process works on
// what is assigned to it. Try it in three terminals, and then kill, pause (Ctrl-Z)
// or end (Ctrl-C) whichever you like, as often as you like:
//
//	go run ./coordinator run -voters a,b,c -node a -gossip 127.0.0.1:7410
//	go run ./coordinator run -voters a,b,c -node b -join 127.0.0.1:7410
//	go run ./coordinator run -voters a,b,c -node c -join 127.0.0.1:7410
//
// Each tells where it serves; GET / says what it has in force. To let another node
// lead, make a file named drain in the data directory of the one that does. At last,
// see whether ever two of them worked on one partition:
//
//	go run ./coordinator check /tmp/coordinator-?/journal
//
// # How it is kept safe
//
// Workers ask the leader, a few times within a grant. An answer lets a worker work on
// some partitions until one grant after it had asked, so a worker that hears nothing
// stops by itself. A leader gives a partition to another worker only when the one
// before says that it has stopped, or when its grant has expired, with a twentieth
// more for clocks that disagree. Each assignment has an LSN; a worker keeps the
// newest for each partition on disk before it heeds it, and heeds none that is not
// newer. What a worker was granted by one leader the next one finds out by its
// questions, and waits out one grant before it gives anything to anybody.
//
// A process that is paused between looking at the clock and acting acts late. Here,
// acts are lines in the process's own journal. If what you do can be seen by others,
// send the assignment's LSN along, and let the other end keep an lsn.Fence: see
// examples/fencing-sql and examples/fencing-http. Go's clock does not count the time
// that a machine sleeps: where machines do, take one that does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
)

// grace is the time to leave in good order.
const grace = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := hclog.New(&hclog.LoggerOptions{})
	if err := command(ctx, os.Args[1:], log); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Error("end", "error", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, log hclog.Logger) error {
	switch {
	case len(args) > 0 && args[0] == "run":
		c, err := parse(args[1:])
		if err != nil {
			return err
		}
		return serve(ctx, c, log.With("node", c.cluster.Node))
	case len(args) > 1 && args[0] == "check":
		return check(os.Stdout, args[1:])
	}
	return errors.New(`want "run" with its flags (-h lists them), or "check" with the journals of all processes`)
}

// check reads journals, tells what they show, and fails if that is what must not be.
func check(w io.Writer, files []string) error {
	var journals [][]audit.Line
	for _, file := range files {
		lines, err := audit.Read(file)
		if err != nil {
			return err
		}
		journals = append(journals, lines)
	}
	report := audit.Check(journals...)
	for _, problem := range report.Problems {
		fmt.Fprintln(w, problem)
	}
	fmt.Fprintf(w, "%d terms, %d assignments, %d of them in force, %d acts, %d problems\n",
		report.Terms, report.Assigned, report.Begun, report.Worked, len(report.Problems))
	if len(report.Problems) > 0 {
		return fmt.Errorf("the journals show %d problems", len(report.Problems))
	}
	return nil
}

// serve is one process of the service, until ctx ends.
func serve(ctx context.Context, c config, log hclog.Logger) (err error) {
	listener, err := net.Listen("tcp", c.http)
	if err != nil {
		return err
	}
	defer listener.Close()
	c.cluster.AdminAddr = listener.Addr().String()
	p, err := open(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	server := &http.Server{Handler: handler(p), ReadTimeout: c.grant, WriteTimeout: c.grant}
	defer server.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop() // a process that cannot be asked is of no use
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("cannot be asked any more", "error", err)
		}
	}()
	log.Info("started", "http", c.cluster.AdminAddr, "gossip", p.node.Status().GossipAddr)
	return p.run(ctx)
}

// open puts a process together.
func open(ctx context.Context, c config, log hclog.Logger) (*process, error) {
	node, err := cluster.Start(ctx, c.cluster)
	if err != nil {
		return nil, err
	}
	p := &process{node: node, every: c.every, log: log}
	if err := p.furnish(c, &http.Client{Timeout: c.grant}); err != nil {
		return nil, errors.Join(err, node.Close(ctx))
	}
	return p, nil
}

// furnish opens what the process keeps in the node's data directory: the node has
// made it, and lets no other process in.
func (p *process) furnish(c config, client *http.Client) error {
	dir := c.cluster.DataDir
	fences, err := openFences(filepath.Join(dir, "fences.json"), c.partitions)
	if err != nil {
		return err
	}
	journal, err := audit.Open(filepath.Join(dir, "journal"), c.cluster.Node)
	if err != nil {
		return err
	}
	p.hold = newHold(c.cluster.Node, journal, fences)
	p.office = &office{journal: journal, partitions: c.partitions, grant: c.grant, log: p.log}
	p.ask = askByHTTP(p.node, client)
	p.health = func() error {
		return errors.Join(p.hold.health(), drained(filepath.Join(dir, "drain")))
	}
	return nil
}

// close ends the node, which leads no more, and closes the journal.
func (p *process) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(p.node.Close(ctx), p.hold.journal.Close())
}
