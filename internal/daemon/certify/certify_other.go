//go:build !linux

package certify

import (
	"errors"
	"net"
)

var errSystem = errors.New("a parent can tell of the death of a node on Linux only")

// IsChild reports false.
func IsChild() bool { return false }

// Run fails: only Linux can do this.
func Run([]string) (int, error) { return 0, errSystem }

// Hold fails likewise.
func Hold() (func(net.Conn, []byte) error, error) { return nil, errSystem }
