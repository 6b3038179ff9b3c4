package doctor

import "golang.org/x/sys/unix"

// freeSpace is what an unprivileged process may still write where dir is.
func freeSpace(dir string) (bytes uint64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

// clockGoesOn reports whether there is a clock that nobody sets and that does not
// stop while the machine sleeps.
func clockGoesOn() bool {
	var ts unix.Timespec
	return unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) == nil
}

// fileLimit is how many files a process may have open.
func fileLimit() (limit uint64, known bool) {
	var r unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	return r.Cur, err == nil
}
