//go:build !linux

package netmesh

import "net"

func cheap(conn net.Conn) net.Conn { return conn }

func ordinary(conn net.Conn) net.Conn { return conn }
