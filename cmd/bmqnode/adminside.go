package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// adminOptions are the flags of `run` about its HTTP side.
type adminOptions struct {
	addr, advertise    string
	socket, socketMode string
	tokenFile          string
	tokenReads         bool
}

// tokenFlag is the same flag for nodes and for those who ask them.
const tokenFlag = "admin-token-file"

func (a *adminOptions) register(f *pflag.FlagSet) {
	f.StringVar(&a.addr, "admin-addr", defaultAdminAddr, `host:port of the HTTP side ("": none)`)
	f.StringVar(&a.advertise, "advertise-admin", "", "host:port that others are told, if not --admin-addr")
	f.StringVar(&a.socket, "admin-socket", "", "path of a Unix socket for the HTTP side, beside --admin-addr")
	f.StringVar(&a.socketMode, "admin-socket-mode", "0600", "permissions of that socket")
	f.StringVar(&a.tokenFile, tokenFlag, "", "file with the token that is demanded of whoever changes something")
	f.BoolVar(&a.tokenReads, "admin-token-reads", false, "demand the token of readers, too")
}

// adminSide is the HTTP side before there is a node to answer for.
type adminSide struct {
	listeners []net.Listener
	told      string // the address that others are told
	config    admin.Config
}

// open listens, and reads the token.
func (a *adminOptions) open() (side *adminSide, err error) {
	mode, err := a.check()
	if err != nil {
		return nil, usageError{err}
	}
	side = &adminSide{told: a.advertise, config: admin.Config{TokenReads: a.tokenReads, Hosts: hosts(a.addr, a.advertise)}}
	if a.tokenFile != "" {
		if side.config.Token, err = admin.ReadToken(a.tokenFile); err != nil {
			return nil, usageError{err}
		}
	}
	if err := errors.Join(a.listenTCP(side), a.listenUnix(side, mode)); err != nil {
		side.close()
		return nil, err
	}
	return side, nil
}

// check names what is wrong with the flags, and reads the socket's mode.
func (a *adminOptions) check() (fs.FileMode, error) {
	mode, err := strconv.ParseUint(a.socketMode, 8, 32)
	switch {
	case err != nil || mode > 0o777:
		return 0, fmt.Errorf("--admin-socket-mode is %q, but must be octal permissions such as 0600 or 0660", a.socketMode)
	case a.tokenReads && a.tokenFile == "":
		return 0, fmt.Errorf("--admin-token-reads is of no use without --%s", tokenFlag)
	}
	return fs.FileMode(mode), nil
}

func (a *adminOptions) listenTCP(side *adminSide) error {
	if a.addr == "" {
		return nil
	}
	ln, err := admin.Listen(a.addr)
	if err != nil {
		return err
	}
	side.listeners = append(side.listeners, ln)
	if side.told == "" {
		side.told = ln.Addr().String()
	}
	return nil
}

func (a *adminOptions) listenUnix(side *adminSide, mode fs.FileMode) error {
	if a.socket == "" {
		return nil
	}
	ln, err := admin.ListenUnix(a.socket, mode)
	if err != nil {
		return err
	}
	side.listeners = append(side.listeners, ln)
	return nil
}

// close is for a side that never served.
func (s *adminSide) close() {
	for _, ln := range s.listeners {
		ln.Close()
	}
}

func (s *adminSide) serve(node *cluster.Node, cfg cluster.Config, log hclog.Logger) *admin.Server {
	s.config.Node, s.config.Faults, s.config.Logger = node, cfg.Faults, log
	return admin.Serve(s.config, s.listeners...)
}

// hosts are the names in addresses.
func hosts(addrs ...string) (names []string) {
	for _, addr := range addrs {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			names = append(names, strings.ToLower(host))
		}
	}
	return names
}
