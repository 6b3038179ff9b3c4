package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holding returns this process's TCP listener at addr and the files that it has open below
// dir, each once more, for Config.Held.
//
// Others take it for proof that a process is dead, and with it its work, that its port is
// closed, or its directory's lock is free. A guard that holds them makes that true of the
// work as well. The error says what was not found.
func Holding(addr, dir string) (held []*os.File, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("directory to hold: %w", err)
	}
	open, err := openFiles()
	if err != nil {
		return nil, err
	}
	var listener, below bool
	for _, f := range open {
		listens, inside := listensAt(f, addr), strings.HasPrefix(f.Name(), dir+"/")
		if !listens && !inside {
			f.Close()
			continue
		}
		held = append(held, f)
		listener, below = listener || listens, below || inside
	}
	if !listener || !below {
		Release(held)
		return nil, fmt.Errorf("hold the listener at %s (found: %t) and files in %s (found: %t)", addr, listener, dir, below)
	}
	return held, nil
}

// openFiles are the files that this process has open, each once more: the numbers of
// those it has may mean something else by the time that one looks.
func openFiles() (files []*os.File, err error) {
	numbers, err := openNumbers()
	if err != nil {
		return nil, err
	}
	for _, fd := range numbers {
		// Above those listed, so that none is met twice.
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, numbers[len(numbers)-1]+1)
		if errors.Is(err, unix.EBADF) {
			continue // closed meanwhile
		}
		if err != nil {
			Release(files)
			return nil, fmt.Errorf("open file %d once more: %w", fd, err)
		}
		name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(again))
		files = append(files, os.NewFile(uintptr(again), name))
	}
	return files, nil
}

// openNumbers are the descriptors that this process has open, the highest last.
func openNumbers() (numbers []int, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("list what is open: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			numbers = append(numbers, fd)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// listensAt reports whether a file is a TCP listener at addr.
func listensAt(f *os.File, addr string) bool {
	fd := int(f.Fd())
	accepts, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || accepts == 0 {
		return false
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	var port int
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		port = a.Port
	case *unix.SockaddrInet6:
		port = a.Port
	}
	return strings.HasSuffix(addr, ":"+strconv.Itoa(port))
}
