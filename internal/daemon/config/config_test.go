package config

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// parsed are the options of a command line, after which a file is applied if there is one.
func parsed(t *testing.T, file string, args ...string) (o *Options, err error) {
	t.Helper()
	o = &Options{}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.Register(flags)
	require.NoError(t, flags.Parse(args))
	if file == "" {
		return o, nil
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	return o, ApplyFile(path, flags)
}

// node are the options that every node must have.
var node = []string{"--node", "a", "--voters", "a,b", "--data-dir", "d"}

func TestAFileSetsWhatNoFlagDoes(t *testing.T) {
	o, err := parsed(t, `
node: a
voters: [a, b, 007]
data-dir: d
lease: 4500ms
profile: blazingmq
priority: 3
admin-socket-mode: 0660
rehearsal: true
min-term: 37
`, "--priority", "7", "--scouting-rule", "node-order")
	require.NoError(t, err)
	cfg, err := o.Resolve()
	require.NoError(t, err)
	require.EqualValues(t, "a", cfg.Node)
	require.Equal(t, NodeIDs([]string{"a", "b", "007"}), cfg.Voters, "the text counts, no number")
	require.Equal(t, 7, cfg.Election.Priority, "flags win")
	require.Equal(t, lsn.Term(37), cfg.MinTerm)
	require.Equal(t, scouting.RuleNodeOrder, cfg.Election.Rule)
	require.NotNil(t, cfg.Faults)
	mode, err := o.Admin.SocketMode()
	require.NoError(t, err)
	require.EqualValues(t, 0o660, mode)

	want, _ := elector.Profile("blazingmq")
	want.Lease = 4500 * time.Millisecond
	require.Equal(t, want, cfg.Election.Timing, "the profile, but what is given")
}

func TestAnEmptyNameOfTheClusterIsTheDefault(t *testing.T) {
	o, err := parsed(t, "cluster: ''", node...)
	require.NoError(t, err)
	cfg, err := o.Resolve()
	require.NoError(t, err)
	require.Equal(t, cluster.DefaultCluster, cfg.Cluster)
}

func TestAQualityOfServiceSetsTheTimers(t *testing.T) {
	want := detector.QoS{Detect: 200 * time.Millisecond, Accuracy: 0.99999,
		Mistakes: detector.Recurrence(30 * 24 * time.Hour)}
	for _, text := range []string{
		"qos: {detect: 200ms, mistakes: 1/30d, accuracy: 0.99999}",
		"qos:\n  accuracy: 0.99999\n  detect: 200ms\n  mistakes: 1/30d",
		"qos: 'detect: 200ms; mistakes: 1/30d; accuracy: 0.99999'",
	} {
		o, err := parsed(t, text, append(node, "--lease", "150ms")...)
		require.NoError(t, err)
		cfg, err := o.Resolve()
		require.NoError(t, err)
		require.Equal(t, want, cfg.Election.QoS)
		timing := elector.ForQoS(want)
		timing.Lease = 150 * time.Millisecond
		require.Equal(t, timing, cfg.Election.Timing, "but what is given")
	}
}

func TestElectionsOfPrefixesAreAsTheNode(t *testing.T) {
	o, err := parsed(t, "prefixes: [job/, \"a:b\"]\nprofile: lan",
		append(node, "--priority", "7", "--shutdown-timeout", "5s")...)
	require.NoError(t, err)
	cfg, err := o.Resolve()
	require.NoError(t, err)
	require.Len(t, cfg.Prefixes, 2)
	for _, prefix := range []string{"job/", "a:b"} {
		require.Equal(t, cfg.Election, cfg.Prefixes[prefix])
	}
	require.Equal(t, elector.LAN(), cfg.Election.Timing)
	require.Equal(t, 4*time.Second, cfg.Election.PrepareTimeout)
	require.Equal(t, 7, cfg.Election.Priority)
}

func TestPhiIsCompletedByTheTimers(t *testing.T) {
	for text, want := range map[string]detector.PhiConfig{
		"phi: {threshold: 8, window: 200, min-deviation: 100ms, pause: 1s}": {Threshold: 8, Window: 200,
			MinDeviation: 100 * time.Millisecond, Pause: time.Second},
		"phi:\n  window: 100\n  min-deviation: 300ms": {Threshold: 8, Window: 100,
			MinDeviation: 300 * time.Millisecond},
		"phi: {}": {Threshold: 8},
	} {
		o, err := parsed(t, text, node...)
		require.NoError(t, err)
		cfg, err := o.Resolve()
		require.NoError(t, err)
		require.Equal(t, want, cfg.Election.Phi)
	}
}

func TestAnEmptyFileLeavesTheDefaults(t *testing.T) {
	o, err := parsed(t, "# nothing yet\n", node...)
	require.NoError(t, err)
	cfg, err := o.Resolve()
	require.NoError(t, err)
	require.Equal(t, elector.Article(), cfg.Election.Timing)
	require.Equal(t, DefaultAdminAddr, o.Admin.Addr)
}

// TestScripts compares what is wrong with the options in testdata/options.txt. A file is read as
// it stands there; flags have a line each, besides those that every node must have.
func TestScripts(t *testing.T) {
	datadriven.RunTest(t, "testdata/options.txt", func(t *testing.T, d *datadriven.TestData) string {
		var o *Options
		var err error
		switch d.Cmd {
		case "file":
			_, err = parsed(t, d.Input)
		case "flags":
			args := slices.Clone(node)
			for line := range strings.Lines(d.Input) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				args = append(args, name+"="+cmp.Or(value, "true"))
			}
			o, err = parsed(t, "", args...)
			require.NoError(t, err)
			_, err = o.Resolve()
		case "nothing":
			o, err = parsed(t, "")
			require.NoError(t, err)
			_, err = o.Resolve()
		}
		if err == nil {
			return "right\n"
		}
		require.ErrorAs(t, err, new(UsageError))
		return place.ReplaceAllString(err.Error(), "c.yaml") + "\n"
	})
}

var place = regexp.MustCompile(`/\S+/c\.yaml`)

func TestTheLogGoesToTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(file, []byte("before\n"), 0o600))
	o, err := parsed(t, "", "--log-file", file, "--log-format", "json", "--log-level", "trace")
	require.NoError(t, err)
	log, err := o.NewLogger()
	require.NoError(t, err)
	log.Named("mesh").Trace("kept", "peer", "b")
	log.SetLevel(hclog.Warn)
	log.Info("left out")
	log.Warn("kept", "took", 4776*time.Millisecond)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^before\n\{"time":"[^"]+","level":"trace","msg":"kept","logger":"mesh","peer":"b"\}\n`+
		`\{"time":"[^"]+","level":"warn","msg":"kept","took_s":4.776\}\n$`, string(text))

	o, err = parsed(t, "", "--log-file", file+".txt")
	require.NoError(t, err)
	log, err = o.NewLogger()
	require.NoError(t, err)
	log.Warn("kept", "took", 4776*time.Millisecond)
	text, err = os.ReadFile(file + ".txt")
	require.NoError(t, err)
	require.Contains(t, string(text), " kept: took=4.776s\n")

	o, err = parsed(t, "", "--log-file", "/nowhere/log")
	require.NoError(t, err)
	_, err = o.NewLogger()
	require.ErrorAs(t, err, new(UsageError))
	require.ErrorContains(t, err, "--log-file: open /nowhere/log")
}
