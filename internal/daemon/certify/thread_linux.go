package certify

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process that dies loses its threads, then its memory, then its files; then its parent is
// told. Memory takes long: up to 0.1 s a gibibyte. So two threads of the child each hold a pipe
// to the parent, in a table of files of their own, which ends with the thread. The end of a pipe
// tells the parent to look: the child is dead when no thread has memory to run in.

// lookAfter is how long the parent looks once a pipe has ended.
const lookAfter = time.Second

// threads is how many hold a pipe: the last thread of a process gives back the memory before
// its files, and two cannot both be the last.
const threads = 2

// addPipes gives a command that is not started the pipes from its threads.
func addPipes(cmd *exec.Cmd) (pipes []*os.File, err error) {
	for range threads {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		pipes, cmd.ExtraFiles = append(pipes, read), append(cmd.ExtraFiles, write)
	}
	return pipes, nil
}

// keepInThread gives a file to a new thread that does nothing else, so that the caller can
// close it. It reports false if the kernel has no way to do so: Linux before 5.9.
func keepInThread(fd int) bool {
	const kept, failed = 1, 2
	var result atomic.Int32
	go inOwnThread(func() {
		// No channel and no timer from here on: the Go runtime could need a file for it.
		_, _, err := syscall.RawSyscall(unix.SYS_CLOSE_RANGE,
			uintptr(fd)+1, math.MaxUint32, unix.CLOSE_RANGE_UNSHARE)
		if err != 0 {
			result.Store(failed)
			return
		}
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, uintptr(fd)-1, 0)
		result.Store(kept)
		for {
			_, _, _ = syscall.Syscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0) // a signal ends it
		}
	})
	for result.Load() == 0 {
		time.Sleep(20 * time.Microsecond)
	}
	return result.Load() == kept
}

// inOwnThread calls f in a thread that runs nothing else meanwhile, and that is not the first
// of the process, whose files /proc shows as those of the process.
func inOwnThread(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	locked := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		close(locked)
		f()
	}()
	<-locked
}

// tellEarly calls tell when the end of a pipe announced that a child dies, and it has no memory
// any more. It gives up on one that takes long, as one does that dumps its core. The pauses
// grow, so that it does not keep the dying process from the processor.
func tellEarly(pipe *os.File, pid int, tell func()) {
	_, _ = pipe.Read(make([]byte, 1)) // the child writes nothing
	if !hasOwnProc() {
		return
	}
	pause := 20 * time.Microsecond
	for end := time.Now().Add(lookAfter); time.Now().Before(end); {
		// The thread that calls exec() takes the number of the first one, which may fall between the
		// looks at the two. The second time it has the memory of the new program.
		gone := hasNoMemory(pid)
		if gone && hasNoMemory(pid) {
			tell()
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
	}
}

// hasOwnProc reports whether /proc tells of the namespace of process IDs of this process. In
// that of another one the number of the child means another process.
func hasOwnProc() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, numbers, _ := strings.Cut(string(status), "\nNSpid:") // from its own namespace inwards
	numbers, _, _ = strings.Cut(numbers, "\n")
	return strings.TrimSpace(numbers) == strconv.Itoa(os.Getpid())
}

// hasNoMemory reports whether all threads of a child have given up its memory, so that none will
// run code of its own again: a thread without memory has no exe. To read its statm or stat would
// hold the memory, and then give it back in this process. A child without a directory is hidden,
// or waited for already, which Run tells.
func hasNoMemory(pid int) bool {
	before, err := threadsOf(pid)
	if err != nil || len(before) == 0 {
		return false
	}
	for _, id := range before {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/task/%s/exe", pid, id))
		if !gone(err) {
			return false
		}
	}
	// A thread that was started meanwhile was started by one that is not in the list either.
	isNew := func(id string) bool { return !slices.Contains(before, id) }
	after, err := threadsOf(pid)
	return err == nil && len(after) > 0 && !slices.ContainsFunc(after, isNew)
}

func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// threadsOf are the numbers of the threads of a process.
func threadsOf(pid int) ([]string, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(0)
}
