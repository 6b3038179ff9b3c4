//go:build !linux

package main_test

import "testing"

func failWrites(t *testing.T,
	_ int) {
	t.Skip("limits of another process can be set on Linux only")
}

func mountSmall(t *testing.T, _, _ string) { t.Skip("small file systems are made on Linux only") }

func fill(*testing.T, string) {}
