//go:build !linux

package nodes

// MayBeRealTime reports whether processes may have real-time scheduling here.
func MayBeRealTime() bool { return false }
