package service

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// adminSide is the admin side before there is a node to answer for.
type adminSide struct {
	listeners  []net.Listener
	advertised string // the address that others are told
	config     admin.Config
}

// openAdmin reads the token, and listens.
func openAdmin(o *config.Admin) (side *adminSide, err error) {
	side = &adminSide{advertised: o.Advertise, config: admin.Config{TokenReads: o.TokenReads}}
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
		if side.config.Token, err = admin.ReadToken(o.TokenFile); err != nil {
			return nil, config.Usage(err)
		}
	}
	if o.Addr != "" {
		ln, err := admin.Listen(o.Addr)
		if err != nil {
			return nil, err
		}
		side.listeners = append(side.listeners, ln)
		if side.advertised == "" {
			side.advertised = ln.Addr().String()
		}
	}
	if o.Socket != "" {
		ln, err := admin.ListenUnix(o.Socket, mode)
		if err != nil {
			side.close()
			return nil, err
		}
		side.listeners = append(side.listeners, ln)
	}
	return side, nil
}

// close is for a side that never served.
func (s *adminSide) close() {
	for _, ln := range s.listeners {
		ln.Close()
	}
}

// ownVariables are not inherited by commands: those that bmqnode sets itself, and those by
// which the service manager speaks to bmqnode alone.
var ownVariables = []string{
	"BMQ_NODE", "BMQ_CLUSTER", "BMQ_GROUP", "BMQ_TERM", "BMQ_LSN", "BMQ_LEASE_DEADLINE",
	"BMQ_ADMIN_ADDR", "BMQ_ADMIN_SOCKET", "BMQ_EVENT", "BMQ_LEADER", "BMQ_LEADER_META",
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
}

// Environment is what every command of this node finds: the variables of this process, but
// those of another bmqnode, and where the node is and answers.
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
