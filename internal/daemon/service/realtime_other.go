//go:build !linux

package service

import (
	"fmt"
	"io"
)

// RealTime is for Linux alone.
func RealTime(warnings io.Writer) {
	fmt.Fprintln(warnings, "bmqnode: goes on without --realtime: this is not Linux")
}
