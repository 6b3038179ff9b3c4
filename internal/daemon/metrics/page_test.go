package metrics

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

const page = "../../../docs/metrics.md"

// row is what the page must say of a metric.
var row = regexp.MustCompile("(?m)^\\| `bmqelect_.*$")

func TestThePageListsEveryMetric(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var listed []string
	for _, r := range row.FindAllString(string(text), -1) {
		listed = append(listed, strings.TrimSpace(r))
	}
	var want []string
	for _, f := range gather(t) {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), labels(f), f.GetHelp()))
	}
	require.Equal(t, want, listed, "the table of %s", page)
}

// gather returns the families of the node's own metrics, sorted by name.
func gather(t *testing.T) []*dto.MetricFamily {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{busy()})
	families, err := r.Gather()
	require.NoError(t, err)
	return families
}

func labels(f *dto.MetricFamily) string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	return strings.Join(names, ", ")
}
