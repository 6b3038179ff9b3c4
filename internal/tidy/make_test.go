package tidy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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
