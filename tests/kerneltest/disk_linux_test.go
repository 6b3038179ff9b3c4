package kerneltest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// disk is a voter's file system: ext4 on an image in memory, seen through a FUSE server.
// When the server's process is stopped, the disk hangs; when it is killed, the disk is gone.
// The kernel removes it with the sandbox, also in the middle of a fault.
type disk struct {
	rig                   *rig
	image, storage, mount string
	server                *exec.Cmd
}

const diskSize = 16 << 20 // bytes; an ext4 with a journal needs about 8 MB

// putOnDisks gives each voter a disk.
func (r *rig) putOnDisks() {
	for _, v := range r.voters {
		base := filepath.Dir(v.cfg.Config.DataDir)
		at := func(what string) string { return filepath.Join(base, what+"-"+v.name) }
		d := &disk{rig: r, image: at("image"), storage: at("storage"), mount: at("disk")}
		require.NoError(r.t, os.WriteFile(d.image, nil, 0o600))
		require.NoError(r.t, os.Truncate(d.image, diskSize))
		for _, dir := range []string{d.storage, d.mount} {
			require.NoError(r.t, os.Mkdir(dir, 0o755))
		}
		r.run("", "mkfs.ext4 -q -F -m 0", d.image)
		d.attach()
		v.disk, v.cfg.Config.DataDir = d, filepath.Join(d.mount, "state")
		r.t.Cleanup(func() {
			r.kill(v)
			d.detach()
		})
	}
}

func (d *disk) attach() {
	d.rig.run("", "mount -o loop,errors=remount-ro", d.image, d.storage)
	self, err := os.Executable()
	require.NoError(d.rig.t, err)
	d.server = exec.Command(self)
	d.server.Env = append(os.Environ(), envDisk+"="+d.mount, envDiskOf+"="+d.storage)
	d.server.Stderr = os.Stderr
	told, err := d.server.StdoutPipe()
	require.NoError(d.rig.t, err)
	require.NoError(d.rig.t, d.server.Start())
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(d.rig.t, err, "the FUSE server is not ready: %q", line)
}

// detach ends the server and unmounts the file systems.
func (d *disk) detach() {
	d.pull()
	_ = d.server.Wait() // killed
	d.rig.run("", "umount -l", d.mount)
	// A supervisor that has just closed its output may still hold the lock there.
	require.Eventually(d.rig.t, func() bool {
		return unix.Unmount(d.storage, 0) == nil
	}, testkit.Limit(20*time.Second), 10*time.Millisecond, d.storage)
}

func (d *disk) hang() { _ = d.server.Process.Signal(syscall.SIGSTOP) }
func (d *disk) goOn() { _ = d.server.Process.Signal(syscall.SIGCONT) }
func (d *disk) pull() { _ = d.server.Process.Kill() }

// fill leaves no byte free. It writes behind the FUSE server, which makes no difference to a voter.
func (d *disk) fill() {
	f, err := os.Create(filepath.Join(d.storage, "filler"))
	require.NoError(d.rig.t, err)
	defer f.Close()
	for block := 1 << 16; block > 0; {
		if _, err = f.Write(make([]byte, block)); err != nil {
			require.ErrorIs(d.rig.t, err, unix.ENOSPC)
			block /= 2
		}
	}
	require.Error(d.rig.t, os.WriteFile(filepath.Join(d.storage, "probe"), []byte{1}, 0o600))
	_ = os.Remove(filepath.Join(d.storage, "probe")) // of no byte
}

func (d *disk) empty() { require.NoError(d.rig.t, os.Remove(filepath.Join(d.storage, "filler"))) }

// protect makes ext4 read-only, as the kernel does after an error of the medium.
func (d *disk) protect() {
	d.rig.run("", "mount -o remount,abort", d.storage)
	err := os.WriteFile(filepath.Join(d.storage, "probe"), []byte{1}, 0o600)
	require.ErrorIs(d.rig.t, err, unix.EROFS)
}

// lackingDisks returns why this machine cannot have such disks.
func lackingDisks() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return "needs FUSE: " + err.Error()
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		return "needs mkfs.ext4 (package e2fsprogs)"
	}
	dir := "/run/probe"
	defer os.RemoveAll(dir)
	defer os.Remove(dir + ".image")
	for _, command := range [][]string{
		{"mkdir", "-p", dir}, {"truncate", "-s", fmt.Sprint(diskSize), dir + ".image"},
		{"mkfs.ext4", "-q", "-F", dir + ".image"}, {"mount", "-o", "loop", dir + ".image", dir},
		{"umount", dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Sprintf("needs ext4 on loop devices: %v: %v: %s", command, err, out)
		}
	}
	return ""
}

// onDisks gives the voters disks, or skips the test.
func onDisks(t *testing.T, r *rig) *rig {
	t.Helper()
	if lack := lackingDisks(); lack != "" {
		t.Skip(lack)
	}
	r.putOnDisks()
	return r
}

// beDisk serves the directory storage at mount.
func beDisk(storage, mount string) {
	root, err := fs.NewLoopbackRoot(storage)
	if err == nil {
		var server *fuse.Server
		server, err = fs.Mount(mount, root, &fs.Options{
			MountOptions: fuse.MountOptions{DirectMountStrict: true},
		})
		if err == nil {
			fmt.Println("ready")
			server.Wait()
			err = errors.New("unmounted")
		}
	}
	fmt.Fprintln(os.Stderr, "disk", mount, "ends:", err)
	os.Exit(1)
}
