package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// theUnit is a copy of the systemd unit that runs the binary of this tree.
func theUnit(t *testing.T) string {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here; it comes with Debian's package systemd")
	}
	source, err := os.ReadFile("../../deploy/systemd/bmqnode.service")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(source), "/usr/bin/bmqnode", binary)
	path := filepath.Join(t.TempDir(), "bmqnode.service")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
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
	source, err := os.ReadFile("../../deploy/systemd/bmqnode.service")
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "bmqnode.yaml")
	require.NoError(t, os.WriteFile(config, []byte("node: a\nlease: never\n"), 0o600))
	_, stderr, code := bmqnode(t, "run", "--config", config)
	require.Contains(t, string(source), "RestartPreventExitStatus="+strconv.Itoa(code)+"\n", stderr)

	// The example's configuration is right except for the machine.
	text, err := os.ReadFile("../../deploy/systemd/bmqnode.yaml")
	require.NoError(t, err)
	own := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(own, text, 0o600))
	pki := t.TempDir()
	does(t, "certs", "--dir", pki, "--cluster", "orders", "a", "b", "c")
	fails(t, 1, "192.0.2.1:7401", "run", "--config", own, "--data-dir", t.TempDir(), "--admin-addr",
		"127.0.0.1:0", "--tls-dir", pki+"/a")
}
