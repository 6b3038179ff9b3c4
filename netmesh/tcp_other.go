//go:build !linux

package netmesh

import (
	"syscall"
	"time"
)

// setUserTimeout does nothing: the option is Linux's. Pings notice a dead peer, too.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
