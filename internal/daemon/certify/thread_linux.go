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

// A process that dies loses its threads, then its memory, then its files; then its parent learns of
// it. Freeing the memory takes up to 0.1 s a gibibyte. So two threads of the child each hold a pipe
// to the parent in a file table of their own, which ends with the thread. The end of a pipe tells
// the parent to look: the child is dead when no thread has memory to run in.

// lookAfter is how long the parent looks after the end of a pipe.
const lookAfter = time.Second

// threads is how many threads hold a pipe. The last thread of a process frees the memory before its
// files; of two threads, one is not the last.
const threads = 2

// addPipes gives a command that is not started yet the pipes for its threads.
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

// keepInThread gives a file to a new thread that does nothing else; the caller can close its own.
// It reports false if the kernel cannot do so: Linux before 5.9.
func keepInThread(fd int) bool {
	const kept, failed = 1, 2
	var result atomic.Int32
	go inOwnThread(func() {
		// No channel and no timer from here on: the Go runtime might need a file for them.
		_, _, err := syscall.RawSyscall(unix.SYS_CLOSE_RANGE,
			uintptr(fd)+1, math.MaxUint32, unix.CLOSE_RANGE_UNSHARE)
		if err != 0 {
			result.Store(failed)
			return
		}
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, uintptr(fd)-1, 0)
		result.Store(kept)
		for {
			_, _, _ = syscall.Syscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0) // a signal ends the call
		}
	})
	for result.Load() == 0 {
		time.Sleep(20 * time.Microsecond)
	}
	return result.Load() == kept
}

// inOwnThread calls f in a thread that runs nothing else meanwhile. It is not the first thread,
// whose files /proc shows as those of the process.
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

// tellEarly waits for the end of a pipe, and calls tell when the child has no memory. It gives up
// if that takes long, as for a process that dumps its core. The pauses grow, to leave the processor
// to the dying process.
func tellEarly(pipe *os.File, pid int, tell func()) {
	_, _ = pipe.Read(make([]byte, 1)) // the child writes nothing
	if !hasOwnProc() {
		return
	}
	pause := 20 * time.Microsecond
	for end := time.Now().Add(lookAfter); time.Now().Before(end); {
		// The thread that calls exec() takes the number of the first thread, maybe between the looks at
		// the two. At the second look it has the memory of the new program.
		gone := hasNoMemory(pid)
		if gone && hasNoMemory(pid) {
			tell()
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
	}
}

// hasOwnProc reports whether /proc is for the PID namespace of this process. In the /proc of
// another namespace, the number of the child means another process.
func hasOwnProc() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, numbers, _ := strings.Cut(string(status), "\nNSpid:") // outermost namespace first
	numbers, _, _ = strings.Cut(numbers, "\n")
	return strings.TrimSpace(numbers) == strconv.Itoa(os.Getpid())
}

// hasNoMemory reports whether all threads of a child have lost its memory, so that none will run
// its code again: a thread without memory has no exe. Reading statm or stat instead would hold the
// memory, and then free it in this process. A child without a directory is hidden, or was waited
// for, in which case Run tells.
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
	// The starter of a thread that was started meanwhile would not be in the list either.
	isNew := func(id string) bool { return !slices.Contains(before, id) }
	after, err := threadsOf(pid)
	return err == nil && len(after) > 0 && !slices.ContainsFunc(after, isNew)
}

func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

func threadsOf(pid int) ([]string, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(0)
}
