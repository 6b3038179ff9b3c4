// Package service runs a node as a daemon, with its log, its admin side and its hooks, under a
// service manager if there is one.
package service

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// Daemon is a running node and what belongs to it.
type Daemon struct {
	Options *config.Options
	Config  cluster.Config
	Node    *cluster.Node
	Log     hclog.Logger

	listeners []net.Listener // of the admin side
	tokens    *admin.Tokens  // nil: none
	watchers  sync.WaitGroup // all end with the node
	prepared  atomic.Bool    // by a hook, for work that has not begun
}

// lastPatience is the time after --shutdown-timeout in which the process must end: a log that
// nobody reads may block every other way to say what hangs.
const lastPatience = 2 * time.Second

// Run runs a node while work runs. It returns why the node failed or, if it did not, what work
// returned.
func Run(
	ctx context.Context, cfg cluster.Config, o *config.Options,
	work func(context.Context, *Daemon) error,
) error {
	log, err := o.NewLogger()
	if err != nil {
		return err
	}
	cfg.Logger = log
	if err := notify("STATUS=starting"); err != nil {
		return fmt.Errorf("notify socket of the service manager, NOTIFY_SOCKET: %w", err)
	}
	side, err := openAdmin(&o.Admin)
	if err != nil {
		return ask.Explain(err)
	}
	cfg.AdminAddr = side.advertised
	side.config.TLS = newestTLS(&cfg)
	d := &Daemon{Options: o, Config: cfg, Log: log, listeners: side.listeners,
		tokens: side.config.Tokens}
	var serving atomic.Pointer[admin.Server]
	cfg.Health.Probes = d.probes()
	cfg.Health.Changed = func(s health.Status) {
		if server := serving.Load(); server != nil { // before, nobody can have asked
			server.Probed(s)
		}
	}
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		side.close()
		return ask.Explain(err)
	}
	side.config.Node, side.config.Faults, side.config.Logger = node, cfg.Faults, log.Named("admin")
	side.config.DataDir, side.config.TLSDir = cfg.DataDir, o.TLSDir
	server := admin.Serve(side.config, side.listeners...)
	serving.Store(server)
	stopping := sync.OnceFunc(supervise(node, log))
	context.AfterFunc(ctx, stopping) // at once: the work may take its time to end
	d.Node = node
	d.watchers.Go(func() { watchForDuplicate(node, log) })
	d.watchers.Go(d.watchTokens)
	outcome := work(ctx, d)
	defer time.AfterFunc(o.Shutdown+lastPatience, func() { os.Exit(1) }).Stop()
	stopping()
	failure := node.Err()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Shutdown)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		log.Warn("not a clean end", "error", err)
	}
	if err := server.Close(ctx); err != nil {
		log.Warn("requests were cut off", "error", err)
	}
	d.watchers.Wait()
	if failure != nil {
		return failure
	}
	return outcome
}

// probes are those that the options ask for.
func (d *Daemon) probes() (all []health.Probe) {
	o := d.Options.Health
	if o.Disk {
		disk := health.Disk(d.Config.DataDir)
		disk.Timeout = cmp.Or(o.DiskTimeout, disk.Timeout)
		all = append(all, disk)
	}
	if o.URL != "" {
		all = append(all, health.URL(o.URL))
	}
	if o.Command != "" {
		env := append(d.Environment(""), "BMQ_EVENT=health")
		all = append(all, health.Command(env, "sh", "-c", o.Command))
	}
	return all
}

// JoinGroups takes part in the elections of --groups except one. Without a priority their leaders
// spread over the nodes, as those of --prefixes do.
func (d *Daemon) JoinGroups(except string) error {
	cfg := d.Config.Election
	cfg.AwaitCampaign = false // nobody campaigns for these
	for _, group := range d.Options.Groups {
		if group == except {
			continue
		}
		cfg.Priority = d.Config.Election.Spread(group, d.Config.Node)
		if _, err := d.Node.Election(group, cfg); err != nil {
			return fmt.Errorf("--groups: %w", err)
		}
	}
	return nil
}

// Reloads reports whether the node reads files again: --tls-dir or tokens.
func (d *Daemon) Reloads() bool { return d.Config.TLS != nil || d.tokens != nil }

// ReloadAtHangup makes the node read the TLS files and the tokens again at SIGHUP, which would end
// the process otherwise.
func (d *Daemon) ReloadAtHangup() {
	signal.Reset(syscall.SIGHUP)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	d.watchers.Go(func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-hangups:
			case <-d.Node.Done():
				return
			}
			if err := d.Node.ReloadTLS(); err != nil {
				d.Log.Error("--tls-dir not read again: the node goes on with what it had", "error", err)
			}
			d.reloadTokens("")
		}
	})
}

// The pauses between two looks for a duplicate name, and between two log lines about it.
const (
	duplicateLook   = 2 * time.Second
	duplicateRepeat = time.Minute
)

// watchForDuplicate logs an error while this process is the second one of its name. Voters accept
// only the first one, so a node with a link to a voter is not the second, and the watch ends. A
// link to an observer proves nothing: it may not know the first one yet.
func watchForDuplicate(node *cluster.Node, log hclog.Logger) {
	look := time.NewTicker(duplicateLook)
	defer look.Stop()
	var logged time.Time
	for {
		select {
		case <-node.Done():
			return
		case now := <-look.C:
			st := node.StatusOf(cluster.Selection{Group: cluster.DefaultGroup})
			for _, m := range st.Members {
				if m.Voter && m.Link == "up" {
					return
				}
			}
			var by []cluster.NodeID
			for _, f := range st.Findings {
				if f.Kind == findings.NameTwice && f.Peer != st.Node {
					by = append(by, f.Peer)
				}
			}
			if len(by) > 0 && now.Sub(logged) >= duplicateRepeat {
				logged = now
				log.Error("this process is the second of its name: the members refuse it, and it takes no part",
					"node", st.Node, "members", by,
					"advice", "stop it or rename it; if it is the right one, stop the other")
			}
		}
	}
}
