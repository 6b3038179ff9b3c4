package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

func TestEverythingTheFormatHas(t *testing.T) {
	s, err := Load("testdata/good/everything.yaml", "seed=5")
	require.NoError(t, err)
	require.Equal(t, "testdata/good/everything.yaml", s.File)
	require.Equal(t, "leader-ping-pong", s.Name)
	require.Equal(t, Begin{"a", 10}, s.Begin)
	require.Equal(t, 2*time.Second, s.Election.Timing.MaxRandomWait)
	require.EqualValues(t, 5, s.Seed)
	require.Len(t, s.Timeline, 21)
	require.Len(t, s.Expect, 9)
}

func TestLoadSaysWhichFileIsMissing(t *testing.T) {
	_, err := Load("testdata/nonesuch.yaml")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "load scenario: open testdata/nonesuch.yaml: ")
}

// Names without limit would be compared each with each.
func TestNamesAreBounded(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	_, err := Parse("f.yaml", []byte("name: x\nduration: 1s\nnodes: ["+strings.Join(names, ",")+"]\n"))
	require.ErrorContains(t, err, "f.yaml:3:8: nodes is 100000 names, but must be at most 256")
}

func TestFilesOfAnySizeAreRefusedOrRead(t *testing.T) {
	long := strings.Repeat("# as long as it gets\n", yamltext.MaxSize/21+1)
	_, err := Parse("f.yaml", []byte(base+long))
	require.EqualError(t, err,
		"f.yaml:1:1: this is no scenario: at most 1048576 bytes and "+
			"32 lists or mappings within each other are read")
	_, err = Parse("f.yaml", []byte(base+long[:yamltext.MaxSize/2]))
	require.NoError(t, err)
	_, err = Parse("f.yaml", []byte(base+strings.Repeat("x", yamltext.MaxSize/2)+": 1"))
	require.ErrorContains(t, err, "unknown key")
}

func TestLineEndsAndByteOrderMark(t *testing.T) {
	_, err := Parse("f.yaml",
		[]byte(strings.ReplaceAll(base, "\n", "\r\n")+"timeline:\r\n  - {at: 1s, cut: [a-x]}\r\n"))
	require.EqualError(t, err, `f.yaml:5:20: no node is called "x": there are a, b, c, d`)
	_, err = Parse("f.yaml", []byte("\ufeff"+base))
	require.NoError(t, err)
}

func TestConfigOfEveryNode(t *testing.T) {
	s, err := Parse("f.yaml", []byte(
		"name: x\nduration: 1s\nnodes: {a: {priority: 3}, b: {candidate: false}, o: {observer: true}}"))
	require.NoError(t, err)
	want := elector.Config{Self: "a", Voters: []NodeID{"a", "b"}, Priority: 3,
		Timing: elector.Article()}
	require.Equal(t, want, s.Config(s.Nodes[0]))
	require.True(t, s.Config(s.Nodes[1]).NotCandidate)
	require.True(t, s.Config(s.Nodes[2]).Observer())
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yaml", "deep/c.yaml", "deep/notes.md", "empty/x.yml"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	in := func(name string) string { return filepath.Join(dir, name) }

	found, err := Find(dir, in("a.yaml"), in("deep/notes.md"), in("deep/./c.yaml"))
	require.NoError(t, err)
	require.Equal(t, []string{in("a.yaml"), in("b.yaml"), in("deep/c.yaml"), in("deep/notes.md")},
		found)

	_, err = Find(dir, in("nonesuch"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "find scenarios: ")
	_, err = Find(in("empty"))
	require.EqualError(t, err,
		"find scenarios: no file in "+in("empty")+" has a name that ends in .yaml")
}

func TestFindReportsFoldersThatCannotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads every folder: run as another user to test this")
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "closed"), 0))
	_, err := Find(dir)
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestRangeHolds(t *testing.T) {
	r := Range{1, 3}
	for v, want := range map[float64]bool{0.9: false, 1: true, 2: true, 3: true, 3.1: false} {
		require.Equal(t, want, r.Holds(v), v)
	}
}
