package main_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// check is one check of the doctor's that is not as it should be.
type check struct{ Kind, Level, Where, What, Fix, See string }

// diagnosis is what the doctor found, by kind.
type diagnosis map[string][]check

// examine lets the doctor look, and returns what is not as it should be.
func examine(t testing.TB, args ...string) (found diagnosis, code int) {
	t.Helper()
	out, errs, code := nodes.Run(t, append([]string{"doctor", "--json", "--quiet", "--timeout", "20s"},
		args...)...)
	var report struct{ Checks []check }
	require.NoError(t, json.Unmarshal([]byte(out), &report), "%s\n%s", out, errs)
	found = diagnosis{}
	for _, c := range report.Checks {
		found[c.Kind] = append(found[c.Kind], c)
	}
	return found, code
}

// tells waits until the doctor of a mesh names all of these kinds.
func tells(s *nodes.Scene, kinds []string, args ...string) (found diagnosis) {
	s.T.Helper()
	defer func() {
		if s.T.Failed() {
			s.T.Logf("the doctor found %v", found)
		}
	}()
	s.Eventually("the doctor finds "+strings.Join(kinds, ", "), func() bool {
		found, _ = examine(s.T, args...)
		return !slices.ContainsFunc(kinds, func(k string) bool { return len(found[k]) == 0 })
	})
	return found
}

// TestTheDoctorOfARunningMesh plants fault after fault into one mesh.
func TestTheDoctorOfARunningMesh(t *testing.T) {
	t.Parallel()
	s, _ := nodes.Elected(t, 3)
	at := []string{"--admin", s.Nodes()[0].AdminAddr}
	s.Eventually("nothing is wrong", func() bool {
		// A slow machine may have slow disks and links: that is no failure.
		stdout, stderr, code := nodes.Run(t, append([]string{"doctor"}, at...)...)
		return code == 0 && stderr == "" && strings.Contains(stdout, "leads in term") &&
			strings.Contains(stdout, "6 of 6 directions are up") && strings.Contains(stdout, "0 failures")
	})

	// A process with the name of n1, a member of another cluster, and one with other
	// voters and timers.
	second := stranger(s, "second", map[string]any{"node": "n1"})
	wasp := stranger(s, "wasp", map[string]any{"node": "wasp", "cluster": "wasps"})
	stranger(s, "odd", map[string]any{"node": "odd", "voters": []string{"n1", "n2", "n9"},
		"lease": "1400ms"})
	asked := []string{"--admin", strings.Join([]string{s.Nodes()[0].AdminAddr,
		second.Nodes()[0].AdminAddr, wasp.Nodes()[0].AdminAddr}, ",")}
	found := tells(s, []string{"name-twice", "wrong-cluster", "voters-differ",
		"settings-differ"}, asked...)
	require.Contains(t, found["voters-differ"][0].What, "n9")
	require.Empty(t, found["never-seen"], "one list alone has n9")
	s.Eventually("the second is named by its address", func() bool { // once it answers in time
		found, _ = examine(t, asked...)
		return slices.ContainsFunc(found["name-twice"], func(c check) bool {
			return c.Where == "n1" && strings.Contains(c.What, second.Nodes()[0].AdminAddr)
		})
	})
	require.Equal(t, "docs/errors.md#name-twice", found["name-twice"][0].See)
	s.Eventually("the second says that it is one", func() bool {
		return slices.ContainsFunc(second.Lines(), func(l procs.Line) bool {
			return strings.Contains(l.Text, "this process is the second of its name")
		})
	})
	_, code := examine(t, at...)
	require.Equal(t, 1, code)

	// Its text is wrapped, and advice is given once.
	stdout, _, code := nodes.Run(t, append([]string{"doctor", "--timeout", "20s"},
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

	s.Isolate("n2")
	// The second n1 and odd may have spoilt a link before, so a pair with its link down is
	// not enough: the pair that is cut must be there.
	s.Eventually("the link between n1 and n2 is down, and somebody has no leader", func() bool {
		found, _ = examine(t, at...)
		return len(found["no-leader"]) > 0 && slices.ContainsFunc(found["link-down"],
			func(c check) bool {
				return (c.Where == "n1 - n2" || strings.Contains(c.What, "n1 - n2: ")) && c.Level == "FAIL"
			})
	})
	require.NoError(t, s.Named("n3").Kill())
	s.Eventually("n3 is missed", func() bool {
		found, _ := examine(t, at...)
		return slices.ContainsFunc(found["no-answer"], func(c check) bool {
			return c.Where == "n3" && strings.Contains(c.What, "connection refused; n1 has its link down")
		})
	})
}

// stranger starts one more process that joins the mesh, with options of its own.
func stranger(s *nodes.Scene, name string, options map[string]any) *nodes.Scene {
	s.T.Helper()
	all := nodes.Quick()
	all["voters"], all["join"] = []string{"n1", "n2", "n3"}, []string{}
	for _, n := range s.Nodes() {
		all["join"] = append(all["join"].([]string), n.GossipAddr)
	}
	maps.Copy(all, options)
	guest := nodes.LayOut(s.T, all, name)
	require.NoError(s.T, guest.Start())
	return guest
}

func TestAWarningFailsOnlyIfItIsToBeStrict(t *testing.T) {
	t.Parallel()
	s, _ := nodes.Elected(t, 2)
	at := s.Nodes()[0].AdminAddr
	s.Eventually("nothing is wrong but the number of voters", func() bool {
		found, code := examine(t, at)
		return code == 0 && len(found["even-voters"]) == 1 && found["even-voters"][0].Level == "WARN"
	})
	_, code := examine(t, "--strict", at)
	require.Equal(t, 1, code)
}

func TestTheDoctorSaysThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	stderr := nodes.Fails(t, 1, "no node answers; name one that runs with --admin", "doctor",
		"--admin", "127.0.0.1:1")
	for line := range strings.Lines(stderr) {
		require.True(t, strings.HasPrefix(line, "bmqnode: "), line)
	}
}
