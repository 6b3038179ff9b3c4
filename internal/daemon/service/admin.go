package service

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/netmesh"
)

// adminSide is the admin side before the node has started.
type adminSide struct {
	listeners  []net.Listener
	advertised string // the address for the other members
	config     admin.Config
}

// openAdmin reads the tokens and opens the listeners.
func openAdmin(o *config.Admin) (side *adminSide, err error) {
	side = &adminSide{advertised: o.Advertise, config: admin.Config{
		TokenReads: o.TokenReads, Open: o.Open,
	}}
	for _, addr := range []string{o.Addr, o.Advertise} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			side.config.Hosts = append(side.config.Hosts, strings.ToLower(host))
		}
	}
	mode, err := o.SocketMode()
	if err != nil {
		return nil, config.Usage(err)
	}
	if o.TokenFile != "" {
		if side.config.Tokens, err = admin.OpenTokens(o.TokenFile); err != nil {
			return nil, config.Usage(err)
		}
	}
	addrs := []string{o.Addr}
	if o.Socket != "" {
		addrs = append(addrs, admin.UnixPrefix+o.Socket)
	}
	for _, addr := range addrs {
		if addr == "" {
			continue
		}
		ln, err := admin.Listen(addr, mode)
		if err != nil {
			side.close()
			return nil, err
		}
		side.listeners = append(side.listeners, ln)
		if side.advertised == "" && ln.Addr().Network() == "tcp" {
			side.advertised = ln.Addr().String()
		}
	}
	return side, nil
}

// newestTLS makes c.TLS keep the newest valid credentials, and returns a function for them; nil
// without TLS.
func newestTLS(c *cluster.Config) (newest func() *netmesh.Credentials) {
	give := c.TLS
	if give == nil {
		return nil
	}
	var kept atomic.Pointer[netmesh.Credentials]
	name, node := c.Cluster, c.Node
	c.TLS = func() (cluster.Credentials, error) {
		got, err := give()
		if err == nil {
			if _, _, wrong := got.Check(name, node); wrong == nil { // the node reports invalid ones
				kept.Store(&got.Credentials)
			}
		}
		return got, err
	}
	return kept.Load
}

// tokensEvery is the pause between two looks at the file of tokens.
const tokensEvery = 10 * time.Second

// watchTokens reads the tokens again and again until the node ends.
func (d *Daemon) watchTokens() {
	if d.tokens == nil {
		return
	}
	ticker := time.NewTicker(tokensEvery)
	defer ticker.Stop()
	for said := ""; ; {
		select {
		case <-ticker.C:
		case <-d.Node.Done():
			return
		}
		said = d.reloadTokens(said)
	}
}

// reloadTokens reads the tokens again, if there are any. It returns what is wrong with them, and
// logs that unless it was said before.
func (d *Daemon) reloadTokens(said string) (why string) {
	if d.tokens == nil {
		return ""
	}
	if err := d.tokens.Reload(); err != nil {
		why = err.Error()
	}
	switch {
	case why == "", why == said:
	case d.tokens.Revoked():
		d.Log.Error("no token is accepted: the file has none", "error", why)
	default:
		d.Log.Error("tokens not read again: the node goes on with those before", "error", why)
	}
	return why
}

// close closes the listeners of a side that never served.
func (s *adminSide) close() {
	for _, ln := range s.listeners {
		ln.Close()
	}
}

// ownVariables are not for commands: bmqnode sets them itself, or its service manager set them for
// bmqnode alone.
var ownVariables = []string{
	"BMQ_NODE", "BMQ_CLUSTER", "BMQ_GROUP", "BMQ_TERM", "BMQ_LSN", "BMQ_LEASE_DEADLINE",
	"BMQ_ADMIN_ADDR", "BMQ_ADMIN_SOCKET", "BMQ_EVENT", "BMQ_LEADER", "BMQ_LEADER_META",
	"BMQ_PREPARED",
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
}

// Environment is the environment of every command of this node: that of this process, without
// another bmqnode's variables, and the names and admin addresses of the node.
func (d *Daemon) Environment(group string) (env []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(ownVariables, name) {
			env = append(env, v)
		}
	}
	env = append(env, "BMQ_NODE="+string(d.Config.Node), "BMQ_CLUSTER="+d.Config.Cluster,
		"BMQ_GROUP="+group)
	for _, ln := range d.listeners {
		switch addr := ln.Addr().(type) {
		case *net.TCPAddr:
			from := addr.String()
			if addr.IP.IsUnspecified() {
				from = fmt.Sprintf("localhost:%d", addr.Port)
			}
			env = append(env, "BMQ_ADMIN_ADDR="+from)
		case *net.UnixAddr:
			if path, err := filepath.Abs(addr.Name); err == nil {
				env = append(env, "BMQ_ADMIN_SOCKET="+path)
			}
		}
	}
	return env
}
