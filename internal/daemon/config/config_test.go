package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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

func TestMistakesInAFileAreNamedWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"key of no option": {"node: a\nprio: 3\n",
			[]string{`c.yaml:2:1: there is no option "prio"; the options are`}},
		"a near one": {"node: a\nmesh_addr: x\nnodes: b\n", []string{
			`c.yaml:2:1: there is no option "mesh_addr"; did you mean mesh-addr?`,
			`c.yaml:3:1: there is no option "nodes"; did you mean node?`,
		}},
		"no such place": {"config: x\n", []string{`c.yaml:1:1: there is no option "config"`}},
		"two mistakes": {"lease: soon\nrehearsal: 2\n", []string{
			`c.yaml:1:8: option "lease" is "soon", but must be a duration such as`,
			`c.yaml:2:12: option "rehearsal" is "2", but must be true or false`,
		}},
		"a quality of two": {"qos: [1, 2]\n", []string{
			`c.yaml:1:6: option "qos" is "1,2", but must be fields such as {detect: 1s, mistakes`}},
		"a quality within": {"qos: {detect: {a: b}}\n",
			[]string{`c.yaml:1:6: option "qos" must be a value or a list of values`}},
		"a field of phi": {"node: a\nphi: {treshold: 9}\n", []string{
			`c.yaml:2:6: option "phi" is "{treshold: 9}", but must be fields such as {threshold: 8, window: 200, ` +
				`min-deviation: 100ms, pause: 1s}: "treshold" is no field: there are threshold, window, min-d`}},
		"a value of phi": {"phi: {pause: 2}\n", []string{`: pause is "2", but must be written as in`}},
		"no number": {"priority: high\n",
			[]string{`option "priority" is "high", but must be a whole number`}},
		"no term": {"min-term: 37.5\n",
			[]string{`option "min-term" is "37.5", but must be a whole number below 2^64`}},
		"a negative term": {"min-term: -1\n", []string{`option "min-term" is "-1", but must be`}},
		"a term of 65 bits": {"min-term: 18446744073709551616\n",
			[]string{`option "min-term" is "18446744073709551616", but must be`}},
		"time without unit": {"lease: 2\n", []string{`option "lease" is "2", but must be a duration`}},
		"no value": {"node:\n",
			[]string{`c.yaml:1:7: option "node" must be a value or a list of values`}},
		"mapping for a list": {"voters: {a: b}\n", []string{`option "voters" must be a value`}},
		"no mapping": {"hello\n",
			[]string{"c.yaml:1:1: must be lines of the form 'option: value'"}},
		"broken YAML": {"voters: [a\n", []string{"c.yaml:1:"}},
		"a key twice": {"node: a\nnode: b\n", []string{"c.yaml:2:1: "}},
		"second document": {"node: a\n---\nnode: b\n",
			[]string{"c.yaml:3:5: a second document: one file is one node"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsed(t, c.text)
			require.ErrorAs(t, err, new(UsageError))
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestMistakesInOptionsAreNamedByTheirFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"--lease is 9s, but must be at most":                          {"--lease", "9s"},
		"--initial-wait is":                                           {"--initial-wait", "1ms"},
		`--profile is "nil", but must be one of article, blazingmq`:   {"--profile", "nil"},
		`--scouting-rule is "x", but must be default or node-order`:   {"--scouting-rule", "x"},
		`--log-level is "loud", but must be trace`:                    {"--log-level", "loud"},
		`--log-format is "xml", but must be human or json`:            {"--log-format", "xml"},
		"--hook-timeout is 0s, but must be positive":                  {"--hook-timeout", "0s"},
		"--takeover is 1ms":                                           {"--takeover", "1ms"},
		"--quorum is 7":                                               {"--quorum", "7"},
		"--admin-token-reads is of no use without --admin-token-file": {"--admin-token-reads"},
		`--admin-socket-mode is "rw", but must be octal permissions`:  {"--admin-socket-mode", "rw"},
		`--admin-socket-mode is "10600", but must be octal permissions`: {"--admin-socket-mode",
			"10600"},
		"--min-term is 9223372036854775808, but must be below 9223372036854775807": {
			"--min-term", "9223372036854775808"},
		"--tls-dir is not set, but must be set, since other machines may reach --gossip-addr 0.0.0.0:7": {
			"--gossip-addr", "0.0.0.0:7400"},
		"reach --advertise-mesh n1:7401: make certificates with 'bmqnode certs --dir DIR NODE...'; or set " +
			"--insecure": {"--advertise-mesh", "n1:7401"},
		"--admin-addr is [::]:7402, where other machines may reach it without TLS, but must be on " +
			"loopback or unix:PATH: otherwise make certificates with 'bmqnode certs --dir DIR NODE...' and " +
			"set --tls-dir, or --insecure": {"--admin-addr", "[::]:7402"},
		"--advertise-admin is n1:7402, where": {
			"--advertise-admin", "n1:7402"},
		`--admin-open is "all", but must be some of lead`: {"--admin-open", "leader,all"},
		`--profile is "lan", but must be left out: --qos has its own timers`: {"--profile", "lan",
			"--qos", detector.ExampleQoS},
		"--qos accuracy is 7, but must be at least 0.5 and below 1": {"--qos",
			"detect: 1s, mistakes: 1/1h, accuracy: 7"},
		"--lease is 999ms, but must be with drift shorter than --qos": {"--qos", detector.ExampleQoS,
			"--lease", "999ms"},
		"--heartbeat-broadcast is 450ms, but must be below half of": {"--qos", detector.ExampleQoS,
			"--heartbeat-broadcast", "450ms"},
		"--phi window is 1, but must be between 2 and 10000": {"--phi", "window: 1"},
		"--phi is one that may suspect after 561.200125ms, but must be one that waits for at least --lease " +
			"with drift, 1.428s: a longer pause": {"--phi", "min-deviation: 100ms, pause: 1ns"},
		"--phi is set, but must be left out: --qos has its own detector": {"--qos", detector.ExampleQoS,
			"--phi", "{}"},
		"--mesh-addr is 127.0.0.1:7400, but must be another address than --gossip-addr, which takes TCP": {
			"--mesh-addr", "127.0.0.1:7400"},
		"--admin-addr is 127.0.0.1:7400, but must be another address than --gossip-addr: give each a port": {
			"--admin-addr", "127.0.0.1:7400"},
		"--admin-addr is 127.0.0.1:7401, but must be another address than --mesh-addr": {
			"--admin-addr", "127.0.0.1:7401"},
		"--clock-drift-ppm is": {"--clock-drift-ppm", "-1"},
		"--stop-margin is 2s, but must be positive and shorter than --l": {"--stop-margin", "2s"},
	} {
		o, err := parsed(t, "", append(node, args...)...)
		require.NoError(t, err)
		_, err = o.Resolve()
		require.ErrorAs(t, err, new(UsageError), args)
		require.ErrorContains(t, err, want)
	}
	o, _ := parsed(t, "")
	_, err := o.Resolve()
	for _, want := range []string{"--node is", "--voters is empty", "--data-dir is empty"} {
		require.ErrorContains(t, err, want, "all mistakes at once")
	}
}

func TestOffLoopbackIsAMatterOfChoice(t *testing.T) {
	exposed := []string{"--gossip-addr", "0.0.0.0:7400", "--mesh-addr", "n1:7401", "--admin-addr",
		"10.0.0.1:7402", "--advertise-admin", "n1:7402"}
	for _, args := range [][]string{
		{"--admin-addr", "unix:///run/x"}, {"--admin-addr", ""}, {"--admin-addr", "[::1]:1"},
		append(exposed, "--insecure"), append(exposed, "--tls-dir", "tls"),
		{"--admin-addr", "127.0.0.1:0", "--gossip-addr", "127.0.0.1:0", "--mesh-addr", "127.0.0.1:0"},
	} {
		o, err := parsed(t, "", append(node, args...)...)
		require.NoError(t, err)
		_, err = o.Resolve()
		require.NoError(t, err, args)
	}
}

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
