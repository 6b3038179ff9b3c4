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

// entry is what the page must say of a metric: name, labels and type, and below it the
// help text.
var entry = regexp.MustCompile("(?m)^ *(bmqelect_[a-z_{},]+ (?:gauge|counter|histogram)\n.*)$")

func TestThePageListsEveryMetric(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var listed []string
	for _, m := range entry.FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	var want []string
	for _, f := range gather(t) {
		want = append(want, fmt.Sprintf("%s%s %s\n        %s", f.GetName(), labels(f),
			strings.ToLower(f.GetType().String()), f.GetHelp()))
	}
	require.Equal(t, want, listed, "the list of %s must be\n    %s", page,
		strings.Join(want, "\n    "))
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
	if len(names) == 0 {
		return ""
	}
	return "{" + strings.Join(names, ",") + "}"
}
