package tidy

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	helped = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*## \S`)
	// advice is a make command in a code span, or on a line of its own in a
	// code block; "make" in a sentence is neither.
	advice = regexp.MustCompile(
		"(?m)(?:`|^\\s*\\$? ?)make ([a-z][a-z0-9-]*)(?:`| [A-Z]|\\s*(?:#.*)?$)")
)

func TestMakeTargets(t *testing.T) {
	require.Empty(t, missingTargets(t, repository()))
}

// missingTargets returns a line for each `make target` in the documents that the
// Makefile lacks, and for each target that `make` alone would not list.
func missingTargets(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	makefile, err := fs.ReadFile(root, "Makefile")
	require.NoError(t, err)
	targets := matches(target, makefile)
	for _, name := range targets {
		if !slices.Contains(matches(helped, makefile), name) {
			broken = append(broken, fmt.Sprintf("Makefile: %s has no ## help", name))
		}
	}
	for _, doc := range paths(t, root, func(name string) bool { return path.Ext(name) == ".md" }) {
		text, err := fs.ReadFile(root, doc)
		require.NoError(t, err)
		for _, name := range matches(advice, text) {
			if !slices.Contains(targets, name) {
				broken = append(broken, fmt.Sprintf("%s: the Makefile has no target %s", doc, name))
			}
		}
	}
	return broken
}

func matches(pattern *regexp.Regexp, text []byte) (found []string) {
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

func TestMissingTargetsAreNoticed(t *testing.T) {
	got := missingTargets(t, tree(map[string]string{
		"Makefile": "X = 1\n.PHONY: test\ntest: ## run them\n\tgo test\nbare: test\n",
		"README.md": strings.ReplaceAll(
			"We make sure.\n'make test' 'make tea'\n    make soup  # hot\n  $ make rice RACE=1\nmake no mistake\n", "'", "`"),
	}))
	require.Equal(t, []string{
		"Makefile: bare has no ## help",
		"README.md: the Makefile has no target tea",
		"README.md: the Makefile has no target soup",
		"README.md: the Makefile has no target rice",
	}, got)
}

func TestARedModuleDoesNotStopTheTestsOfTheOthers(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	makefile, err := filepath.Abs("../../Makefile")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, body := range map[string]string{"red": "t.Fail()", "green": ""} {
		module := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(module, 0o700))
		for file, text := range map[string]string{"go.mod": "module " + name + "\n\ngo 1.26\n",
			"a_test.go": "package a\n\nimport \"testing\"\n\nfunc Test(t *testing.T) {" + body + "}\n"} {
			require.NoError(t, os.WriteFile(filepath.Join(module, file), []byte(text), 0o600))
		}
	}
	cmd := exec.Command("make", "-f", makefile, "test", "MODULES=red green", "RACE=")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Regexp(t, `(?s)FAIL\s+red.*ok\s+green.*failed, of the modules red green: red`, string(out))
}
