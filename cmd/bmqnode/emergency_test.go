package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// ran is the data directory of node a of the cluster "bees", and a configuration
// that names it.
func ran(t *testing.T) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	n, err := cluster.Start(t.Context(), cluster.Config{
		Cluster: "bees", Node: "a", Voters: []cluster.NodeID{"a", "b", "c"}, DataDir: dir,
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
	})
	require.NoError(t, err)
	require.NoError(t, n.Close(t.Context()))
	config = filepath.Join(t.TempDir(), "c.yaml")
	text := "node: a\ncluster: bees\nvoters: [a, b, c]\ndata-dir: " + dir + "\n"
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	return dir, config
}

func TestEmergencyChangesNothingUnlessItIsConfirmed(t *testing.T) {
	t.Parallel()
	dir, config := ran(t)
	wasps := filepath.Join(t.TempDir(), "wasps.yaml")
	require.NoError(t, os.WriteFile(wasps,
		[]byte("voters: [a, b, c]\ncluster: wasps\ndata-dir: "+dir+"\n"), 0o600))
	lost := []string{"emergency", "--config", config, "--lost", "b,c"}
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"nothing was changed; if all of this is so, add --confirm bees": {2, lost},
		`--confirm is "BEES", but must be "bees", the name of the cluster`: {2,
			append(lost, "--confirm", "BEES")},
		"say one of --lost, --readmit and --show": {2,
			[]string{"emergency", "--data-dir", dir}},
		"say one of --lost, --readmit and": {2, append(lost, "--show")},
		"--data-dir is empty, but must be": {2,
			[]string{"emergency", "--show"}},
		"--voters is empty, but must be": {2,
			[]string{"emergency", "--data-dir", dir, "--lost", "b"}},
		"add --confirm with the name of the cluster": {2,
			[]string{"emergency", "--data-dir", dir, "--readmit", "b"}},
		"/nowhere.yaml: no such file": {2,
			[]string{"emergency", "--config", "/nowhere.yaml", "--show"}},
		"not needed: a, b are 2 of 3 voters": {1,
			[]string{"emergency", "--config", config, "--lost", "c", "--confirm", "bees"}},
		`belongs to node "a" of cluster "bees", not to node "b"`: {1,
			append(lost, "--node", "b", "--confirm", "bees")},
		`belongs to cluster "bees", ` + wasps + ` is for cluster "wasps"`: {1,
			[]string{"emergency", "--config", wasps, "--lost", "b,c", "--confirm", "bees"}},
		"readmit b in " + dir + ": ": {1,
			[]string{"emergency", "--data-dir", dir, "--readmit", "b", "--confirm", "bees"}},
	} {
		nodes.Fails(t, c.code, want, c.args...)
	}
	stdout := nodes.Does(t, "emergency", "--config", config, "--show")
	require.Equal(t, "no emergency on record in "+dir+"\n", stdout)
}

func TestEmergencyIsSaidLoudlyAndShown(t *testing.T) {
	t.Parallel()
	dir, config := ran(t)
	stdout := nodes.Does(t, "emergency", "--data-dir", dir, "--voters", "a,b,c", "--lost",
		"b,c", "--reason", "flood", "--confirm", "bees")
	for _, want := range []string{
		"EMERGENCY for node a of cluster bees", "can vote until now     a, b, c   2 needed",
		"can vote from now on   a         1 needed",
		"TWO LEADERS", "b, c on record since", "Start node a: it will lead alone.",
	} {
		require.Contains(t, stdout, want)
	}
	stdout = nodes.Does(t, "emergency", "--config", config, "--readmit", "c", "--confirm",
		"bees")
	require.Contains(t, stdout, "c may vote again, as node a sees it from its next start on.")
	stdout = nodes.Does(t, "emergency", "--data-dir", dir, "--show")
	require.Regexp(t, `^b, c of the voters a, b, c declared lost at \S+Z \(flood\); still missing: b\n  c readmitted at \S+Z\n$`, stdout)
}

func TestEmergencyIsDocumentedAsItIs(t *testing.T) {
	t.Parallel()
	dir, _ := ran(t)
	stdout, stderr, code := nodes.Run(t, "emergency", "--data-dir", dir, "--voters", "a,b,c,d,e",
		"--lost", "c,d,e")
	require.Equal(t, 2, code)
	page, err := os.ReadFile("../../docs/emergency.md")
	require.NoError(t, err)
	for line := range strings.Lines(strings.ReplaceAll(stdout+stderr, dir, "/var/lib/bmqnode")) {
		if strings.TrimSpace(line) != "" {
			require.Contains(t, string(page), "\n   "+line)
		}
	}
}

func TestRetiredDirectoryStartsNoNode(t *testing.T) {
	t.Parallel()
	_, config := ran(t)
	stdout := nodes.Does(t, "emergency", "--config", config, "--lost", "a,b", "--retire",
		"--confirm", "bees")
	require.Contains(t, stdout, "This directory is retired: node a does not start on it any more.")
	nodes.Fails(t, 1, "that of a voter that was declared lost", "run", "--config", config,
		"--admin-addr", "127.0.0.1:0", "--gossip-addr", "127.0.0.1:0", "--mesh-addr", "127.0.0.1:0")
}

// An emergency is declared although nobody reads the output on, as behind head.
func TestAnEmergencyIsDeclaredThoughNobodyReadsOn(t *testing.T) {
	t.Parallel()
	_, config := ran(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	cmd := exec.Command(nodes.Binary, "emergency", "--config", config, "--lost", "b,c",
		"--confirm", "bees")
	cmd.Stdout = write
	require.NoError(t, cmd.Run())
	require.NoError(t, write.Close())
	stdout := nodes.Does(t, "emergency", "--config", config, "--show")
	require.Contains(t, stdout, "b, c")
}
