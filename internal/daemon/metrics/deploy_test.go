package metrics

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

const (
	deploy    = "../../../deploy/prometheus/"
	rules     = deploy + "alerts.yml"
	dashboard = "../../../deploy/grafana/bmqelect.json"
)

// alert is what is looked at of a rule.
type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations struct{ Summary, Description string }
}

func alerts(t *testing.T) []alert {
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []alert } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

func TestEveryAlertIsTestedKnowsItsMetricsAndSaysWhatToDo(t *testing.T) {
	tests, err := os.ReadFile(deploy + "alerts_test.yml")
	require.NoError(t, err)
	about, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, a := range alerts(t) {
		require.Contains(t, string(tests), `alertname="`+a.Alert+`"`, "no series of the tests raise it")
		require.Contains(t, string(about), "\n- `"+a.Alert+"`", "the page has no entry for it")
		require.NotEmpty(t, a.Annotations.Summary, a.Alert)
		requireKnown(t, a.Expr)
		require.Contains(t, []string{"critical", "warning"}, a.Labels["severity"], a.Alert)
		require.Regexp(t, `docs/[a-z]+\.md#[a-z0-9-]+`, a.Annotations.Description, a.Alert)
	}
}

var (
	ours     = regexp.MustCompile(`\bbmqelect_[a-z_]+`)
	selector = regexp.MustCompile(`\b(bmqelect_[a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+) *(=~|!~|!=|=) *"([^"]*)"`)
)

// requireKnown demands that a query asks for metrics, labels and, where it names
// them, values that there are.
func requireKnown(t *testing.T, expr string) {
	known := map[string]*dto.MetricFamily{}
	for _, f := range gather(t) {
		known[f.GetName()] = f
		if f.GetType() == dto.MetricType_HISTOGRAM {
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				known[f.GetName()+part] = f
			}
		}
	}
	for _, name := range ours.FindAllString(expr, -1) {
		require.True(t, known[name] != nil || name == "bmqelect_cluster", "%s: there is no %s", expr,
			name)
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			requireLabel(t, known[s[1]], m[1], m[3], expr)
		}
	}
}

func requireLabel(t *testing.T, f *dto.MetricFamily, name, values, expr string) {
	if name == "job" || name == "instance" || name == "le" {
		return
	}
	var there []string
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == name {
				there = append(there, l.GetValue())
			}
		}
	}
	require.NotEmpty(t, there, "%s: %s has no label %s", expr, f.GetName(), name)
	if strings.HasPrefix(values, "$") || name == "reason" &&
		f.GetName() == "bmqelect_leader_changes_total" {
		return // a variable, or what a busy node does not list in full
	}
	for _, v := range strings.Split(values, "|") {
		require.Contains(t, there, v, "%s: %s", expr, name)
	}
}

// board is what is looked at of the dashboard.
type board struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
}

type panel struct {
	Type, Title string
	Description string
	Targets     []struct{ Expr, RefID string }
	Datasource  map[string]string
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
}

func loadBoard(t *testing.T) (b board) {
	text, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(&b))
	return b
}

func TestTheDashboardAsksForMetricsThatThereAre(t *testing.T) {
	b := loadBoard(t)
	require.NotEmpty(t, b.UID)
	require.NotEmpty(t, b.Title)
	require.Positive(t, b.SchemaVersion)
	for _, v := range b.Templating.List {
		requireKnown(t, v.Query)
	}
	for _, p := range b.Panels {
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, "${datasource}", p.Datasource["uid"], p.Title)
		for _, target := range p.Targets {
			requireKnown(t, target.Expr)
			require.NotEmpty(t, target.RefID, p.Title)
		}
	}
}
