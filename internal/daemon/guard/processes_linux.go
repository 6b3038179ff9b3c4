package guard

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is what the kernel tells of one.
type process struct {
	pid, parent, session int
	state                byte
}

// dead reports whether it waits for nothing but its parent.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// signalWhere signals every process that is meant, and reports how many those are.
func signalWhere(meant func(process) bool, sig unix.Signal) (count int) {
	entries, _ := os.ReadDir("/proc") // as much as can be read
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := look(pid); err == nil && meant(p) {
			count++
			_ = unix.Kill(pid, sig)
		}
	}
	return count
}

// look reads what follows the name, which is in parentheses and may hold some itself.
func look(pid int) (p process, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	var group int
	_, err = fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %c %d %d %d", &p.state, &p.parent, &group, &p.session)
	p.pid = pid
	return p, err
}
