package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// crashDir is the environment variable that turns the test binary into a
// process that writes ever higher terms into the directory named by it.
const crashDir = "BMQELECT_STORE_CRASH_DIR"

// writeUntilKilled prints every term after it was reported durable. It ends by
// itself when nobody listens any more.
func writeUntilKilled(dir string) error {
	s, err := Open(dir, alice)
	if err != nil {
		return err
	}
	record, err := s.Group("a")
	if err != nil {
		return err
	}
	if _, err := fmt.Println("boot", s.Boot()); err != nil {
		return err
	}
	for term := record.Entered + 1; ; term++ {
		t := elector.Terms{Entered: term, Reserved: term + 64}
		if err := s.Persist(map[string]elector.Terms{"a": t, "b": t}); err != nil {
			return err
		}
		if _, err := fmt.Println("term", uint64(term)); err != nil {
			return err
		}
	}
}

// printed is what a writer had reported durable when it was killed.
type printed struct{ boot, term uint64 }

// killWriter runs a writer and kills it once it has printed the given number of lines.
func killWriter(t *testing.T, dir string, lines int) printed {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var last printed
	for read := bufio.NewScanner(out); read.Scan(); lines-- {
		if lines == 0 {
			require.NoError(t, cmd.Process.Kill())
		}
		last.note(t, read.Text()) // what it wrote before the kill counts, too
	}
	require.ErrorContains(t, cmd.Wait(), "killed")
	return last
}

func (p *printed) note(t *testing.T, line string) {
	t.Helper()
	what, number, _ := strings.Cut(line, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	require.NoError(t, err, line)
	if what == "boot" {
		p.boot = n
	} else {
		p.term = n
	}
}

func TestKilledProcessForgetsNothing(t *testing.T) {
	dir := t.TempDir()
	var before printed
	for range 20 {
		last := killWriter(t, dir, rand.IntN(15))
		require.Greater(t, last.boot, before.boot)
		s := opened(t, dir)
		require.Greater(t, s.Boot(), last.boot)
		before = printed{boot: s.Boot(), term: max(before.term, last.term)}
		for _, group := range []string{"a", "b"} {
			got, err := s.Group(group)
			require.NoError(t, err)
			require.GreaterOrEqual(t, uint64(got.Entered), before.term)
			require.GreaterOrEqual(t, uint64(got.Reserved), before.term)
		}
		require.NoError(t, s.Close())
	}
	require.Positive(t, before.term)
}
