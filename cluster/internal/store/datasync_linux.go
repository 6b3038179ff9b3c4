package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the content of a file durable, but not its times.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
