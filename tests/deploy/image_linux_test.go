package deploy

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// image is what the Dockerfile makes, as far as a test needs it.
type image struct {
	root               string // its file system
	uid, gid           int
	entrypoint, health []string
}

// The repository's image, made once for all tests, which read it: what runs, runs
// in a copy (theContainer). The tools of this machine stand in for those of the image
// that the first stage begins from, and what they use is not confined to it.
var builtImage = sync.OnceValues(func() (image, error) {
	dir, err := os.MkdirTemp(filepath.Dir(nodes.Binary), "image-")
	if err != nil {
		return image{}, err
	}
	return buildImage(dir)
})

var (
	comments  = regexp.MustCompile(`(?m)^\s*#.*\n`)
	continued = regexp.MustCompile(`\\\n\s*`)
)

// buildImage obeys the Dockerfile: those instructions that this one uses, and an
// error for any other.
func buildImage(dir string) (image, error) {
	text, err := os.ReadFile(recipes + "docker/Dockerfile")
	if err != nil {
		return image{}, err
	}
	text = continued.ReplaceAll(comments.ReplaceAll(text, nil), nil)
	b := builder{dir: dir}
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := b.obey(word, rest); err != nil {
			return image{}, fmt.Errorf("%s: %w", line, err)
		}
	}
	return b.image, nil
}

// builder makes an image from a first stage, whose file system is dir.
type builder struct {
	image
	dir, work string
}

func (b *builder) obey(word, rest string) error {
	switch word {
	case "FROM":
		return standsIn(rest)
	case "WORKDIR":
		b.work = filepath.Join(b.dir, rest)
		return os.MkdirAll(b.work, 0o755)
	case "RUN":
		cmd := exec.Command("sh", "-c", rest)
		cmd.Dir = b.work
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	case "COPY":
		return b.copy(strings.Fields(rest))
	case "USER":
		_, err := fmt.Sscanf(rest, "%d:%d", &b.uid, &b.gid)
		return err
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &b.entrypoint)
	case "HEALTHCHECK":
		_, command, _ := strings.Cut(rest, "CMD ")
		return json.Unmarshal([]byte(command), &b.health)
	case "", "VOLUME", "EXPOSE", "STOPSIGNAL":
		return nil // for whoever runs it
	}
	return fmt.Errorf("this test does not know %s", word)
}

// standsIn reports whether this machine's tools are those that go.mod asks for, if a stage begins
// with such. Else it must begin with nothing.
func standsIn(base string) error {
	mod, err := os.ReadFile(nodes.Top + "/go.mod")
	version, tools := strings.CutPrefix(base, "golang:")
	version, _, _ = strings.Cut(version, " ")
	switch {
	case err != nil:
		return err
	case tools && !bytes.Contains(mod, []byte("\ngo "+version+".")):
		return fmt.Errorf("go.mod wants another version of Go than %s", version)
	case !tools && base != "scratch":
		return fmt.Errorf("this test knows nothing that could stand in for it")
	}
	return nil
}

// copy copies from the repository, or a folder of the first stage to where nothing is yet.
func (b *builder) copy(args []string) error {
	var owner [2]int
	from := regexp.MustCompile(`^--from=build --chown=\S+ (\S+) /$`)
	if m := from.FindStringSubmatch(strings.Join(args, " ")); m != nil {
		b.root = filepath.Join(b.dir, m[1])
		_, err := fmt.Sscanf(args[1], "--chown=%d:%d", &owner[0], &owner[1])
		if err != nil {
			return err
		}
		return chown(b.root, owner[0], owner[1])
	}
	for _, name := range args[:len(args)-1] {
		if err := copyTree(filepath.Join(nodes.Top, name), b.work); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a file into a directory, or what a directory holds except for what
// .dockerignore names and for the repository's history.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		within, _ := filepath.Rel(from, name) // it is below
		switch {
		case err != nil:
			return err
		case within == ".git" || within == "bin":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil // of a work tree
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, within), 0o755)
		case within == ".":
			within = entry.Name()
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, within), text, 0o644)
	})
}

// chown gives away all below a directory, which only root may do.
func chown(dir string, uid, gid int) error {
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || os.Getuid() != 0 {
			return err
		}
		return os.Lchown(name, uid, gid)
	})
}

// theImage returns the image, or skips the test where it cannot be run.
func theImage(t *testing.T) image {
	t.Helper()
	if nodes.Raced && os.Getenv("BMQNODE_IMAGE") == "" {
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
	require.NoError(t, os.CopyFS(root, os.DirFS(img.root)))
	require.NoError(t, chown(root, img.uid, img.gid))
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
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(i.uid), Gid: uint32(i.gid)}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: i.uid,
		HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: i.gid,
		HostID: os.Getgid(), Size: 1}}
	return cmd
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
		node := nodes.Launch(t, img.command(slices.Concat(img.entrypoint, quickFlags, []string{
			"--node", "a", "--voters", "a", "--gossip-addr", host + ":7400",
			"--mesh-addr", host + ":7401", "--admin-addr", host + ":7402"})...))
		var st cluster.Status
		require.Eventually(t, func() (ok bool) {
			st, ok = statusAt(t, host+":7402")
			return ok && st.Groups[0].Leading
		}, nodes.Patience, 20*time.Millisecond, "it leads")
		require.Equal(t, boot, st.Boot, "it remembers")
		require.NoError(t, check())
		require.NoError(t, node.Process.Signal(syscall.SIGTERM))
		require.Zero(t, node.Code(t))
	}
	info, err := os.Stat(filepath.Join(img.root, "var/lib/bmqnode/state.db"))
	require.NoError(t, err)
	if os.Getuid() == 0 {
		require.EqualValues(t, img.uid, info.Sys().(*syscall.Stat_t).Uid)
	}
}
