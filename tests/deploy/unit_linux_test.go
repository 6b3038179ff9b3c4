package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// theUnit is a copy of the systemd unit that runs the binary of this tree.
func theUnit(t *testing.T) string {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here; it comes with Debian's package systemd")
	}
	source, err := os.ReadFile(recipes + "systemd/bmqnode.service")
	require.NoError(t, err)
	return writeIn(t, t.TempDir(), "bmqnode.service",
		strings.ReplaceAll(string(source), "/usr/bin/bmqnode", nodes.Binary))
}

func TestSystemdUnderstandsTheUnit(t *testing.T) {
	t.Parallel()
	unit := theUnit(t)
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), unit,
		"it finds something in the unit, if only worth a warning")
}

func TestTheUnitExposesLittle(t *testing.T) {
	t.Parallel()
	unit := theUnit(t)
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager",
		unit).CombinedOutput()
	if err != nil && strings.Contains(string(out), "unrecognized option") {
		t.Skip("this systemd-analyze judges only units that are loaded")
	}
	require.NoError(t, err, string(out))
	level := regexp.MustCompile(`Overall exposure level.*: (\d+\.\d)`).FindStringSubmatch(string(out))
	require.Len(t, level, 2, string(out))
	exposed, err := strconv.ParseFloat(level[1], 64)
	require.NoError(t, err)
	require.LessOrEqual(t, exposed, 2.0, string(out))
}

// What systemd is told to do has to fit what bmqnode does.
func TestTheUnitFitsTheProgram(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(recipes + "systemd/bmqnode.service")
	require.NoError(t, err)
	config := writeIn(t, t.TempDir(), "bmqnode.yaml", "node: a\nlease: never\n")
	_, stderr, code := nodes.Run(t, "run", "--config", config)
	require.Contains(t, string(source), "RestartPreventExitStatus="+strconv.Itoa(code)+"\n", stderr)

	// The example's configuration is right except for the machine.
	text, err := os.ReadFile(recipes + "systemd/bmqnode.yaml")
	require.NoError(t, err)
	own := writeIn(t, t.TempDir(), "own.yaml", string(text))
	pki := t.TempDir()
	nodes.Does(t, "certs", "--dir", pki, "--cluster", "orders", "a", "b", "c")
	nodes.Fails(t, 1, "192.0.2.1:7401", "run", "--config", own, "--data-dir", t.TempDir(),
		"--admin-addr", "127.0.0.1:0", "--tls-dir", pki+"/a")
}
