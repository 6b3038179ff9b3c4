package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// asDisk is the first argument of this program when it is to serve a disk; the directory with
// what is on it and the mount point follow.
const asDisk = "disk"

// diskFlush is how long a flush to a healthy disk takes longer than to that of the machine: as
// volumes do that a network has.
const diskFlush = 5 * time.Millisecond

// disk is a file system that a process serves. It hangs while the process is stopped, and is gone
// with it.
type disk struct {
	mount  string
	server *process
}

func newDisk(mount string) (*disk, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	storage := mount + "-storage"
	if err := os.Mkdir(storage, 0o700); err != nil {
		return nil, err
	}
	d := &disk{mount: mount, server: &process{cmd: exec.Command(program, asDisk, storage, mount)}}
	cmd := d.server.cmd
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if d.server.commands, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		d.leave()
		return nil, fmt.Errorf("the file system at %s: %w", mount, err)
	}
	return d, nil
}

// take says how long each flush takes longer than that of the storage.
func (d *disk) take(longer time.Duration) error { return d.server.command(longer.String()) }

func (d *disk) hang() error { return d.server.signal(syscall.SIGSTOP) }
func (d *disk) goOn()       { _ = d.server.signal(syscall.SIGCONT) }

func (d *disk) leave() {
	d.server.kill()
	_ = unix.Unmount(d.mount, unix.MNT_DETACH)
}

// serveDisk is the process of a disk. It ends when its standard input does.
func serveDisk(storage, mount string) error {
	signal.Ignore(syscall.SIGINT) // of the terminal; the parent decides
	root, err := fs.NewLoopbackRoot(storage)
	if err != nil {
		return err
	}
	slow := &slowFlush{RawFileSystem: fs.NewNodeFS(root, &fs.Options{})}
	slow.longer.Store(int64(diskFlush))
	server, err := fuse.NewServer(slow, mount, &fuse.MountOptions{DirectMountStrict: true})
	if err != nil {
		return err
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return err
	}
	fmt.Println("ready")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		longer, err := time.ParseDuration(commands.Text())
		if err != nil {
			return err
		}
		slow.longer.Store(int64(longer))
	}
	return nil
}

// slowFlush is a file system whose flushes take longer.
type slowFlush struct {
	fuse.RawFileSystem
	longer atomic.Int64
}

func (s *slowFlush) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	time.Sleep(time.Duration(s.longer.Load()))
	return s.RawFileSystem.Fsync(cancel, in)
}
