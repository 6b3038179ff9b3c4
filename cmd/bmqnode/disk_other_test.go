//go:build !linux

package main_test

import "testing"

func failWrites(t *testing.T, _ int) { t.Skip("limits of another process can be set on Linux only") }
