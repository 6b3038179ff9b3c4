package main_test

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// The repository's image, made once for all tests, which read it: what runs, runs
// in a copy (theContainer). The tools of this machine stand in for those of the image
// that the first stage begins from, and what they use is not confined to it.
var builtImage = sync.OnceValues(func() (image, error) {
	dir, err := os.MkdirTemp(filepath.Dir(binary), "image-")
	if err != nil {
		return image{}, err
	}
	return buildImage("../..", "deploy/docker/Dockerfile", dir)
})

// theImage returns the image, or skips the test where it cannot be run.
func theImage(t *testing.T) image {
	t.Helper()
	if slices.Contains(buildArgs, "-race") && os.Getenv("BMQNODE_IMAGE") == "" {
		t.Skip("the image needs a build of its own, without the race detector: run without -race, or set BMQNODE_IMAGE=1")
	}
	if os.Getuid() != 0 && exec.Command("unshare", "-r", "true").Run() != nil {
		t.Skip("chroot needs root or user namespaces, and there are none")
	}
	img, err := builtImage()
	require.NoError(t, err)
	return img
}

// theContainer returns a copy of the image that the test may change.
func theContainer(t *testing.T) image {
	t.Helper()
	img := theImage(t)
	root, err := os.MkdirTemp(filepath.Dir(img.root), "container-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(root, 0o755))
	require.NoError(t, copyInto(img.root, root, fmt.Sprintf("%d:%d", img.uid, img.gid)))
	img.root = root
	return img
}

// command runs in the image's file system, as its user. Whoever is not root is that
// user in a namespace of his own.
func (i image) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.root, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: i.uid, Gid: i.gid}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(i.uid),
		HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(i.gid),
		HostID: os.Getgid(), Size: 1}}
	return cmd
}

// ownLoopback is an address of this machine that no other process listens on, but
// for those that listen on all: Linux has all of 127.0.0.0/8.
func ownLoopback(n int) string {
	pid := os.Getpid() % (250 * 250)
	return fmt.Sprintf("127.%d.%d.%d", 100+n, 1+pid/250, 1+pid%250)
}

// quickFlags are timers for a node without others to wait for.
var quickFlags = []string{
	"--initial-wait", "1s", "--lease", "900ms", "--heartbeat-broadcast", "200ms",
	"--heartbeat-miss-count", "5", "--max-random-wait", "100ms",
}

func TestTheImageHoldsOneStaticBinary(t *testing.T) {
	t.Parallel()
	img := theImage(t)
	var files []string
	require.NoError(t, fs.WalkDir(os.DirFS(img.root), ".", func(name string, entry fs.DirEntry,
		err error) error {
		if !entry.IsDir() {
			files = append(files, name)
		}
		return err
	}))
	require.Equal(t, []string{"usr/bin/bmqnode"}, files)
	require.DirExists(t, filepath.Join(img.root, "var/lib/bmqnode"))
	require.NotZero(t, img.uid, "not root")

	program, err := elf.Open(filepath.Join(img.root, files[0]))
	require.NoError(t, err)
	defer program.Close()
	require.Nil(t, program.Section(".interp"), "nothing there could load a dynamic binary")
}

func TestTheImageRunsANode(t *testing.T) {
	t.Parallel()
	img := theContainer(t)
	host := ownLoopback(0)
	health := slices.Clone(img.health)
	at := slices.Index(health, "127.0.0.1:7402")
	require.Positive(t, at, "the check asks the default address")
	health[at] = host + ":7402"
	check := func() error { return img.command(health...).Run() }

	require.Error(t, check(), "nobody is there")
	for boot := uint64(1); boot <= 2; boot++ {
		node := img.command(slices.Concat(img.entrypoint, quickFlags, []string{"--node", "a", "--voters",
			"a",
			"--gossip-addr", host + ":7400", "--mesh-addr", host + ":7401", "--admin-addr", host +
				":7402"})...)
		said := launched(t, node)
		st := nodeLeads(t, host+":7402")
		require.Equal(t, boot, st.Boot, "it remembers")
		require.NoError(t, check())
		require.NoError(t, node.Process.Signal(syscall.SIGTERM))
		require.NoError(t, node.Wait(), said)
	}
	info, err := os.Stat(filepath.Join(img.root, "var/lib/bmqnode/state.db"))
	require.NoError(t, err)
	if os.Getuid() == 0 {
		require.Equal(t, img.uid, info.Sys().(*syscall.Stat_t).Uid)
	}
}

// launched starts a command that does not outlive the test, and returns what it says.
func launched(t *testing.T, cmd *exec.Cmd) *lockedBuffer {
	said := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", said.Bytes())
		}
	})
	return said
}

// nodeLeads waits until the node at an admin address leads.
func nodeLeads(t *testing.T, addr string) (st cluster.Status) {
	t.Helper()
	require.Eventually(t, func() (ok bool) {
		var err error
		st, err = statusAt(t, addr)
		return err == nil && st.Groups[0].Leading
	}, patience, 20*time.Millisecond, "it leads")
	return st
}

// statusAt asks the node at an admin address.
func statusAt(t *testing.T, addr string) (cluster.Status, error) {
	client := admin.NewClient(addr)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return client.Status(ctx)
}
