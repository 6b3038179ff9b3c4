package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// The pages are the help; what formats them finds nothing wrong with them.
func TestEveryCommandHasAManualPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man")
	nodes.Does(t, "man", dir)
	for _, name := range []string{"bmqnode", "bmqnode-run", "bmqnode-fault-cut", "bmqnode-leader"} {
		require.FileExists(t, filepath.Join(dir, name+".1"))
	}
	require.NoFileExists(t, filepath.Join(dir, "bmqnode-supervisor.1"), "it is none for people")
	text, err := os.ReadFile(filepath.Join(dir, "bmqnode-leader.1"))
	require.NoError(t, err)
	for _, want := range []string{
		`.TH "BMQNODE-LEADER" "1"`, "bmqnode-leader - Print the name of the node that leads\n",
		`\fBbmqnode leader [flags]\fP`, "leader, 3 if there is none, 1 if no node answers.",
		`\fB--group\fP="default"` + "\n\telection whose leader is meant\n",
		".SH SEE ALSO\n\\fBbmqnode(1)\\fP\n",
	} {
		require.Contains(t, string(text), want)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	for _, file := range files {
		_, stderr, code := nodes.Ended(t, exec.Command(groff, "-man", "-ww", "-Tascii", file))
		require.Zero(t, code, file)
		require.Empty(t, stderr, file)
	}
}
