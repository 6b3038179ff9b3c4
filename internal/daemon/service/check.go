package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// resolveTime bounds the look-ups of all join addresses together.
const resolveTime = 5 * time.Second

// Checked is a node that `run --check` looks at.
type Checked struct {
	Name    string // of its file, or what else its options come from
	Options *config.Options
	Misread error // what could not be read of the options
}

// FromFile reads the options of a node from a file.
func FromFile(file string) Checked {
	var o config.Options
	flags := pflag.NewFlagSet(file, pflag.ContinueOnError)
	o.Register(flags)
	return Checked{file, &o, config.ApplyFile(file, flags)}
}

// Check does `run --check`. It compares the settings that must be the same on every node and, with
// machine, checks this machine for the first node.
func Check(ctx context.Context, w io.Writer, machine bool, nodes ...Checked) error {
	problems := 0
	var reference cluster.Config
	of := ""
	for i, n := range nodes {
		cfg, valid, err := resolve(n.Options, n.Misread)
		switch {
		case err != nil: // what is not there cannot be compared
		case of == "":
			reference, of = cfg, n.Name
		default:
			err = compare(cfg, reference, of)
			if len(reference.Voters) == 0 { // it learns them
				reference, of = cfg, n.Name
			}
		}
		if i == 0 && machine && valid {
			err = errors.Join(err, checkMachine(ctx, w, n.Name, n.Options, cfg))
		}
		problems += printProblems(w, n.Name, cfg, err)
	}
	if problems > 0 {
		return errors.New(console.Count(problems, "problem"))
	}
	fmt.Fprintln(w, "no problem found")
	return nil
}

// resolve returns the configuration, whether a node could start with it, and all that is wrong in
// it or was misread. If the whole file could not be read, it reports no missing options.
func resolve(o *config.Options, misread error) (c cluster.Config, valid bool, err error) {
	if errors.As(misread, new(config.UnreadError)) {
		return c, false, misread
	}
	if c, err = o.Resolve(); err != nil {
		return c, false, errors.Join(misread, err)
	}
	own := []string{c.GossipAddr, cmp.Or(c.AdvertiseGossip, c.GossipAddr)}
	other := func(addr string) bool { return !slices.Contains(own, addr) }
	if len(c.Join) > 0 && len(c.Voters) != 1 && !slices.ContainsFunc(c.Join, other) {
		err = fmt.Errorf("--join is %s, this node's own address, but must be the --gossip-addr of "+
			"another node", strings.Join(c.Join, ","))
	}
	return c, true, errors.Join(misread, err)
}

// printProblems writes a line for each of the joined errors or, if there are none, for what is
// unusual.
func printProblems(w io.Writer, name string, c cluster.Config, err error) (count int) {
	if err == nil {
		switch {
		case len(c.Voters) == 0:
			fmt.Fprintf(w, "%s: no voters: this node learns them from those that it joins, and has no "+
				"vote before 'bmqnode voters add %s'\n", name, c.Node)
		case !slices.Contains(c.Voters, c.Node): // the name may be misspelt
			fmt.Fprintf(w, "%s: %s: this node will have no vote\n", name, c.Role())
		}
		if len(c.Join) == 0 && len(c.Voters) > 1 {
			fmt.Fprintf(w, "%s: no address to join: this node waits until another joins it\n", name)
		}
		if c.MinTerm > 0 {
			fmt.Fprintf(w, "%s: --min-term is %d: no term is below it\n", name, c.MinTerm)
		}
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, name+":") { // an error in a file begins with name and line
			line = name + ": " + line
		}
		fmt.Fprintln(w, line)
		count++
	}
	return count
}

// compare returns the settings that must be the same on every node and differ.
func compare(c, reference cluster.Config, file string) error {
	var wrong config.Mistakes
	wrong.Want(c.Node != reference.Node, "--node is %s, as in %s, but must be unique in the cluster",
		c.Node, file)
	wrong.Want((c.TLS == nil) == (reference.TLS == nil), "--tls-dir is set here or in %s, and not in "+
		"the other: nodes with TLS have no link to nodes without, unless they accept-plain", file)
	table := func(c cluster.Config) map[string]string {
		all := c.Agreed()
		all["quorum"] = all["quorum-rule"]
		delete(all, "quorum-rule")
		all["prefixes"] = fmt.Sprint(slices.Sorted(maps.Keys(c.Prefixes)))
		all["cluster"], all["voters"] = c.Cluster, fmt.Sprint(slices.Sorted(slices.Values(c.Voters)))
		return all
	}
	here, there := table(c), table(reference)
	if len(c.Voters) != len(reference.Voters) { // then majorities differ rightly
		there["quorum"] = here["quorum"]
	}
	if len(c.Voters) == 0 || len(reference.Voters) == 0 {
		there["voters"] = here["voters"]
	}
	for _, name := range slices.Sorted(maps.Keys(here)) {
		wrong.Want(here[name] == there[name], "--%s is %s, but %s in %s: it must be the same on every "+
			"node", name, here[name], there[name], file)
	}
	return errors.Join(wrong...)
}

// checkMachine returns what the node would lack on this machine: its data directory, its addresses,
// the names that it joins. If this very node runs now, that is only a note, written to w.
func checkMachine(
	ctx context.Context, w io.Writer, name string, o *config.Options, c cluster.Config,
) error {
	var errs []error
	complain := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, ask.Explain(err)))
		}
	}
	inUse := cluster.CheckDataDir(c)
	runs := errors.Is(inUse, cluster.ErrDirInUse) && !errors.Is(inUse, cluster.ErrDirOwner)
	if runs {
		fmt.Fprintf(w, "%s: node %s runs now: its data directory, and ports in use, are taken to be "+
			"its own (%s)\n", name, c.Node, inUse)
	} else {
		complain("data-dir", inUse)
	}
	errs = append(errs, checkAddresses(ctx, o, c, runs))
	complain("tls-dir", cluster.CheckTLS(c))
	if o.Admin.TokenFile != "" {
		_, err := admin.OpenTokens(o.Admin.TokenFile)
		complain(config.TokenFlag, err)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	for _, addr := range c.Join {
		host, _, _ := net.SplitHostPort(addr) // Resolve has checked the address
		if _, err := netip.ParseAddr(host); err != nil {
			_, err := net.DefaultResolver.LookupHost(ctx, host)
			complain("join", err)
		}
	}
	return errors.Join(errs...)
}

// checkAddresses returns the addresses on which the node cannot listen. If the node runs now, they
// are in use rightly.
func checkAddresses(
	ctx context.Context, o *config.Options, c cluster.Config, runs bool,
) error {
	var errs []error
	var network net.ListenConfig
	failed := ""
	for _, l := range []struct{ flag, network, addr string }{
		{"gossip-addr", "tcp", c.GossipAddr}, {"gossip-addr", "udp", c.GossipAddr},
		{"mesh-addr", "tcp", c.MeshAddr}, {"admin-addr", "tcp", o.Admin.Addr},
	} {
		var bound io.Closer
		var err error
		switch {
		case l.addr == "", l.flag == failed: // no HTTP side, or reported for TCP already
			continue
		case strings.HasPrefix(l.addr, admin.UnixPrefix):
			continue // the service may make its directory, as systemd does by RuntimeDirectory=
		case l.network == "udp":
			bound, err = network.ListenPacket(ctx, l.network, l.addr)
		default:
			bound, err = network.Listen(ctx, l.network, l.addr)
		}
		switch {
		case err == nil:
			defer bound.Close() // late, so that an address that is used twice is found
		case !runs || !errors.Is(err, syscall.EADDRINUSE):
			failed = l.flag
			errs = append(errs, fmt.Errorf("--%s: %w", l.flag, ask.Explain(err)))
		}
	}
	return errors.Join(errs...)
}
