//go:build !linux

package sdnotify

const abstractSockets = false
