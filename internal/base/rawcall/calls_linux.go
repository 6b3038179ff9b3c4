package rawcall

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read is read(2) on what does not block.
func Read(fd uintptr, b []byte) (int, error) { return transfer(unix.SYS_READ, fd, b) }

// Write is write(2) on what does not block.
func Write(fd uintptr, b []byte) (int, error) { return transfer(unix.SYS_WRITE, fd, b) }

func transfer(trap, fd uintptr, b []byte) (int, error) {
	for {
		n, _, err := unix.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, err
	}
}

// ClockGettime is clock_gettime(2).
func ClockGettime(id int32, ts *unix.Timespec) error {
	_, _, err := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(ts)), 0)
	return failure(err)
}

// TimerfdSettime is timerfd_settime(2) with an absolute time. It does not return the old value.
func TimerfdSettime(fd int, at *unix.ItimerSpec) error {
	_, _, err := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), unix.TFD_TIMER_ABSTIME,
		uintptr(unsafe.Pointer(at)), 0, 0, 0)
	return failure(err)
}

func failure(err unix.Errno) error {
	if err != 0 {
		return err
	}
	return nil
}
