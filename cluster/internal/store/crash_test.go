package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
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
	for term := record.Terms.Entered + 1; ; term++ {
		t := elector.Terms{Entered: term, Reserved: term + 64}
		if err := s.Persist(kept(map[string]elector.Terms{"a": t, "b": t})); err != nil {
			return err
		}
		if _, err := fmt.Println("term", uint64(term)); err != nil {
			return err
		}
	}
}

// killWriter runs a writer, kills it once it has printed the given number of lines, and returns
// the boot and the term that it reported durable, also those after the kill.
func killWriter(t *testing.T, dir string, lines int) (boot, term uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for read := bufio.NewScanner(out); read.Scan(); lines-- {
		if lines == 0 {
			require.NoError(t, cmd.Process.Kill())
		}
		var what string
		var number uint64
		_, err := fmt.Sscan(read.Text(), &what, &number)
		require.NoError(t, err, read.Text())
		if what == "boot" {
			boot = number
		} else {
			term = number
		}
	}
	require.ErrorContains(t, cmd.Wait(), "killed")
	return boot, term
}

func TestKilledProcessForgetsNothing(t *testing.T) {
	dir := t.TempDir()
	var boots, durable uint64
	for range 20 {
		boot, term := killWriter(t, dir, rand.IntN(15))
		require.Greater(t, boot, boots)
		s := opened(t, dir)
		require.Greater(t, s.Boot(), boot)
		boots, durable = s.Boot(), max(durable, term)
		for _, group := range []string{"a", "b"} {
			got, err := s.Group(group)
			require.NoError(t, err)
			require.GreaterOrEqual(t, uint64(got.Terms.Entered), durable)
			require.GreaterOrEqual(t, uint64(got.Terms.Reserved), durable)
		}
		require.NoError(t, s.Close())
	}
	require.Positive(t, durable)
}
