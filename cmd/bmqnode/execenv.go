package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

func isOwn(variable string) bool { return slices.Contains(ownVariables, variable) }

// variables tell where this node answers: BMQ_ADMIN_ADDR, as processes on this machine
// reach it, and BMQ_ADMIN_SOCKET.
func (s *adminSide) variables() (env []string) {
	for _, ln := range s.listeners {
		switch addr := ln.Addr().(type) {
		case *net.TCPAddr:
			env = append(env, "BMQ_ADMIN_ADDR="+fromHere(addr))
		case *net.UnixAddr:
			if path, err := filepath.Abs(addr.Name); err == nil {
				env = append(env, "BMQ_ADMIN_SOCKET="+path)
			}
		}
	}
	return env
}

// fromHere is the address to dial on this machine.
func fromHere(addr *net.TCPAddr) string {
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", addr.Port)
	}
	return addr.String()
}

// leaseVariable tells until when a lease lasts; it moves on, the variable does not.
func leaseVariable(end time.Time) string {
	return "BMQ_LEASE_DEADLINE=" + end.UTC().Format(time.RFC3339Nano)
}

// commandEnvironment is what a command is told when it starts. It takes a fencing token
// for it, so the error wraps cluster.ErrNotLeader if the leadership is over.
func (p *post) commandEnvironment(l *cluster.Leadership, group string) ([]string, error) {
	next, err := l.NextLSN()
	if err != nil {
		return nil, err
	}
	env := append(p.environment(group), fmt.Sprintf("BMQ_TERM=%d", next.Term), "BMQ_LSN="+next.String())
	if end := l.Deadline(); !end.IsZero() {
		env = append(env, leaseVariable(end))
	}
	return env, nil
}
