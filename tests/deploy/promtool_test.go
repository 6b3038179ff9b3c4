package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// promtool runs Prometheus's tool; the test is skipped without it.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: apt-get install prometheus)")
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	promtool(t, "test", "rules", recipes+"prometheus/alerts_test.yml")
}

// TestTheDashboardsQueriesAreValid lets promtool read them as rules.
func TestTheDashboardsQueriesAreValid(t *testing.T) {
	text, err := os.ReadFile(recipes + "grafana/bmqelect.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	variables := strings.NewReplacer("$__rate_interval", "1m", "$cluster", "prod", "$group", "default")
	rules := []map[string]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			rules = append(rules, map[string]string{"alert": p.Title + target.RefID,
				"expr": variables.Replace(target.Expr)})
		}
	}
	group := map[string]any{"name": "dashboard", "rules": rules}
	text, err = json.Marshal(map[string]any{"groups": []any{group}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.Contains(t, promtool(t, "check", "rules", path),
		fmt.Sprintf("SUCCESS: %d rules found", len(rules)))
}
