package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// check is one check of the doctor's that is not as it should be.
type check struct{ Kind, Level, Where, What, Fix, See string }

// diagnosis is what the doctor found, by kind.
type diagnosis map[string][]check

// examine lets the doctor look, and returns what is not as it should be.
func examine(t testing.TB, args ...string) (found diagnosis, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, append([]string{"doctor", "--json", "--quiet", "--timeout", "20s"},
		args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	require.NotContains(t, errs.String(), "DATA RACE")
	var report struct{ Checks []check }
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), "%s\n%s", &out, &errs)
	found = diagnosis{}
	for _, c := range report.Checks {
		found[c.Kind] = append(found[c.Kind], c)
	}
	return found, cmd.ProcessState.ExitCode()
}

// tells waits until the doctor of a mesh names all of these kinds.
func (s *scene) tells(kinds []string, args ...string) (found diagnosis) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the doctor found %v", found)
		}
	}()
	s.eventually("the doctor finds "+strings.Join(kinds, ", "), func() bool {
		found, _ = examine(s.t, args...)
		return !slices.ContainsFunc(kinds, func(k string) bool { return len(found[k]) == 0 })
	})
	return found
}

// TestTheDoctorOfARunningMesh plants fault after fault into one mesh.
func TestTheDoctorOfARunningMesh(t *testing.T) {
	t.Parallel()
	s, _ := elected(t, 3)
	at := []string{"--admin", s.Nodes()[0].AdminAddr}
	s.eventually("nothing is wrong", func() bool {
		// A slow machine may have slow disks and links: that is no failure.
		stdout, stderr, code := bmqnode(t, append([]string{"doctor"}, at...)...)
		return code == 0 && stderr == "" && strings.Contains(stdout, "leads in term") &&
			strings.Contains(stdout, "6 of 6 directions are up") && strings.Contains(stdout, "0 failures")
	})

	// A process with the name of n1, a member of another cluster, and one with other
	// voters and timers.
	second := s.stranger("second", map[string]any{"node": "n1"})
	wasp := s.stranger("wasp", map[string]any{"node": "wasp", "cluster": "wasps"})
	s.stranger("odd", map[string]any{"node": "odd", "voters": []string{"n1", "n2", "n9"},
		"lease": "1400ms"})
	asked := []string{"--admin", strings.Join([]string{s.Nodes()[0].AdminAddr, second.AdminAddr,
		wasp.AdminAddr}, ",")}
	found := s.tells([]string{"name-twice", "wrong-cluster", "voters-differ",
		"settings-differ"}, asked...)
	require.Contains(t, found["voters-differ"][0].What, "n9")
	require.Empty(t, found["never-seen"], "one list alone has n9")
	s.eventually("the second is named by its address", func() bool { // once it answers in time
		found, _ = examine(t, asked...)
		return slices.ContainsFunc(found["name-twice"], func(c check) bool {
			return c.Where == "n1" && strings.Contains(c.What, second.AdminAddr)
		})
	})
	require.Equal(t, "docs/errors.md#name-twice", found["name-twice"][0].See)
	s.eventually("the second says that it is one", func() bool {
		log, err := os.ReadFile(filepath.Join(second.Dir, "node.log"))
		return err == nil && strings.Contains(string(log), "this process is the second of its name")
	})
	_, code := examine(t, at...)
	require.Equal(t, 1, code)

	// Its text is wrapped, and advice is given once.
	stdout, _, code := bmqnode(t, append([]string{"doctor", "--timeout", "20s"},
		strings.Split(asked[1], ",")...)...)
	require.Equal(t, 1, code)
	advised := map[string]bool{}
	for line := range strings.Lines(stdout) {
		if _, see, ok := strings.Cut(line, "  see   docs/errors.md#"); ok {
			// A second name that two processes have, as when a node of another test's mesh
			// comes by, is a second cause.
			once := !advised[see] || strings.TrimSpace(see) == "name-twice"
			require.True(t, once, "one cause, one problem: %s", stdout)
			advised[see] = true
		}
		require.LessOrEqual(t, len(line), 101, "a line is wrapped: %s", line)
	}

	s.isolate("n2")
	// The second n1 and odd may have spoilt a link before, so a pair with its link down is
	// not enough: the pair that is cut must be there.
	s.eventually("the link between n1 and n2 is down, and somebody has no leader", func() bool {
		found, _ = examine(t, at...)
		return len(found["no-leader"]) > 0 && slices.ContainsFunc(found["link-down"],
			func(c check) bool {
				return (c.Where == "n1 - n2" || strings.Contains(c.What, "n1 - n2: ")) && c.Level == "FAIL"
			})
	})
	require.NoError(t, s.node("n3").Kill())
	s.eventually("n3 is missed", func() bool {
		found, _ := examine(t, at...)
		return slices.ContainsFunc(found["no-answer"], func(c check) bool {
			return c.Where == "n3" && strings.Contains(c.What, "connection refused; n1 has its link down")
		})
	})
}

// stranger starts one more process that joins the mesh, with options of its own.
func (s *scene) stranger(name string, options map[string]any) *procs.Node {
	s.t.Helper()
	var join []string
	for _, n := range s.Nodes() {
		join = append(join, n.GossipAddr)
	}
	all := quick()
	all["voters"], all["join"] = []string{"n1", "n2", "n3"}, join
	for key, value := range options {
		all[key] = value
	}
	guest := &scene{t: s.t, dir: s.t.TempDir(), exits: map[string]error{}}
	var err error
	guest.Mesh, err = procs.New(procs.Config{Binary: binary, Names: []string{name}, Dir: guest.dir,
		BasePort: basePort, Options: all})
	require.NoError(s.t, err)
	s.t.Cleanup(guest.end)
	require.NoError(s.t, guest.Start())
	return guest.Nodes()[0]
}

func TestAWarningFailsOnlyIfItIsToBeStrict(t *testing.T) {
	t.Parallel()
	s, _ := elected(t, 2)
	at := s.Nodes()[0].AdminAddr
	s.eventually("nothing is wrong but the number of voters", func() bool {
		found, code := examine(t, at)
		return code == 0 && len(found["even-voters"]) == 1 && found["even-voters"][0].Level == "WARN"
	})
	_, code := examine(t, "--strict", at)
	require.Equal(t, 1, code)
}

func TestMistakesInAskingTheDoctor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nobody there": {[]string{"--admin", "127.0.0.1:1"}, 1,
			"no node answers; name one that runs with --admin"},
		"no time":       {[]string{"--timeout", "0s"}, 2, "--timeout is 0s, but must be positive"},
		"unknown flag":  {[]string{"--all"}, 2, "unknown flag: --all"},
		"no token file": {[]string{"--admin-token-file", "/nowhere"}, 2, "/nowhere"},
	} {
		_, stderr, code := bmqnode(t, append([]string{"doctor"}, c.args...)...)
		require.Equal(t, c.code, code, "%s: %s", name, stderr)
		require.Contains(t, stderr, c.want, name)
		for line := range strings.Lines(stderr) {
			require.True(t, strings.HasPrefix(line, "bmqnode: "), line)
		}
	}
}
