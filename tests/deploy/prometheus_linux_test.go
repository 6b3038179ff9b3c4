package deploy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// watchman is a real Prometheus that scrapes nodes and evaluates deploy's alerts.
type watchman struct {
	t    *testing.T
	addr string
	http http.Client
}

// delays are those of alerts, which are for people's sake; a test does not wait.
var delays = regexp.MustCompile(`(?m)^(\s+for:) \S+$`)

// watch starts a Prometheus on the given jobs: admin addresses, with commas, by the job's name.
// The test is skipped where Prometheus is not installed.
func watch(t *testing.T, jobs map[string]string) *watchman {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed (Debian: apt-get install prometheus)")
	}
	dir := t.TempDir()
	rules, err := os.ReadFile(recipes + "prometheus/alerts.yml")
	require.NoError(t, err)
	writeIn(t, dir, "alerts.yml", delays.ReplaceAllString(string(rules), "$1 0s"))
	// A node on a busy machine takes more than 250 ms to answer: one that keeps its lease
	// must not be taken for one that is down.
	config := "global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 300ms}\n" +
		"rule_files: [alerts.yml]\nscrape_configs:\n"
	for job, targets := range jobs {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%s]}]}\n", job,
			`"`+strings.ReplaceAll(targets, ",", `", "`)+`"`)
	}
	writeIn(t, dir, "prometheus.yml", config)
	w := &watchman{t: t, addr: freeAddr(t), http: http.Client{Transport: &http.Transport{},
		Timeout: nodes.Patience}}
	t.Cleanup(w.http.CloseIdleConnections)
	nodes.Launch(t, exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+w.addr, "--log.level=warn"))
	t.Cleanup(w.tell)
	return w
}

// tell logs for a test that has failed which alerts are up, and how the targets answer.
func (w *watchman) tell() {
	if !w.t.Failed() {
		return
	}
	var alerts []struct {
		Labels                 map[string]string
		State, ActiveAt, Value string
	}
	w.ask("alerts", &struct{ Alerts any }{&alerts})
	for _, a := range alerts {
		w.t.Logf("alert %s since %s, value %s: %v", a.State, a.ActiveAt, a.Value, a.Labels)
	}
	var targets []struct {
		Labels                        map[string]string
		Health, LastScrape, LastError string
		LastScrapeDuration            float64
	}
	w.ask("targets?state=active", &struct{ ActiveTargets any }{&targets})
	for _, g := range targets {
		w.t.Logf("target %v is %s: scraped at %s in %.3f s, error %q", g.Labels, g.Health,
			g.LastScrape, g.LastScrapeDuration, g.LastError)
	}
}

// ask decodes the data of an answer.
func (w *watchman) ask(path string, data any) {
	resp, err := w.http.Get("http://" + w.addr + "/api/v1/" + path)
	if !assert.NoError(w.t, err) {
		return
	}
	defer resp.Body.Close()
	assert.NoError(w.t, json.NewDecoder(resp.Body).Decode(&struct{ Data any }{data}))
}

// freeAddr is an address on loopback that nobody listens on.
func freeAddr(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// query returns the values of a label in the answer to a question.
func (w *watchman) query(expr, label string) (values []string) {
	resp, err := w.http.Get("http://" + w.addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil // it is not up yet
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return nil // it reads its data yet
	}
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Metric map[string]string }
		}
	}
	// Not require: this runs on goroutines of their own too.
	assert.NoError(w.t, json.NewDecoder(resp.Body).Decode(&answer))
	assert.Empty(w.t, answer.Error, expr)
	for _, r := range answer.Data.Result {
		values = append(values, r.Metric[label])
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// firing are the alerts that fire now, for a job.
func (w *watchman) firing(job string) []string {
	return w.query(fmt.Sprintf(`ALERTS{alertstate="firing",job=%q}`, job), "alertname")
}

// alarms waits until all of the alerts fire, or have fired, for a job.
func (w *watchman) alarms(job string, alerts ...string) {
	w.t.Helper()
	begun, missing := time.Now(), alerts
	require.Eventually(w.t, func() bool {
		fired := w.query(fmt.Sprintf(`last_over_time(ALERTS{alertstate="firing",job=%q}[1h])`, job),
			"alertname")
		missing = nil
		for _, a := range alerts {
			if !slices.Contains(fired, "Bmqelect"+a) {
				missing = append(missing, a)
			}
		}
		return len(missing) == 0
	}, nodes.Patience, 100*time.Millisecond, "alerts that did not fire are among %q", alerts)
	w.t.Logf("%v fired after %v", alerts, time.Since(begun).Round(100*time.Millisecond))
}
