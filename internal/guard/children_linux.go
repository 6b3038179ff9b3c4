package guard

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// signalChildren signals every child of this process. They are its own to reap, so
// none of the numbers can mean another process by now.
func signalChildren(sig unix.Signal) {
	for _, pid := range children() {
		_ = unix.Kill(pid, sig)
	}
}

// children are the processes whose parent is this one, those adopted included.
func children() (pids []int) {
	self := strconv.Itoa(os.Getpid())
	processes, _ := os.ReadDir("/proc") // as much as can be read
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err == nil && parentOf(p.Name()) == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf is the parent of a process; "" if it is gone. It follows the name, which is
// in parentheses and may hold some itself, and the state.
func parentOf(pid string) string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}
