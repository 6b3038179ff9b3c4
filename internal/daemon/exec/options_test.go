package exec

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

func resolve(t *testing.T, flags string) (o *Options, err error) {
	t.Helper()
	o = &Options{}
	f := pflag.NewFlagSet("exec", pflag.ContinueOnError)
	o.Register(f)
	args := strings.Fields("--node a --voters a --data-dir d " + flags)
	require.NoError(t, f.Parse(args))
	_, err = o.Resolve()
	return o, err
}

func TestMistakesAreNamed(t *testing.T) {
	for flags, want := range map[string]string{
		"--restart sometimes":    `--restart is "sometimes", but must be never, on-failure, always`,
		"--kill-margin 2s":       "--kill-margin is 2s, but must be positive and shorter than --stop-margin, 450ms",
		"--kill-margin -1s":      "--kill-margin is -1s, but must be positive",
		"--restart-delay -1s":    "--restart-delay is -1s, but must not be negative",
		"--shutdown-timeout 0s":  "--shutdown-timeout is 0s, but must be positive",
		"--not-candidate":        "--not-candidate: a node that never leads would never run the command",
		"--node x":               "--node x is not among --voters: a node that never leads",
		"--unsafe-no-scouting":   "--unsafe-no-scouting has no lease, so nothing would say",
		"--lease 9s --restart x": "--lease is 9s",
	} {
		_, err := resolve(t, flags)
		require.ErrorAs(t, err, new(config.UsageError), flags)
		require.ErrorContains(t, err, want)
	}
}

// A command is told to stop before it is killed, and killed before its lease ends.
func TestMarginsAreFilledInInTheirOrder(t *testing.T) {
	for _, flags := range []string{"", "--profile blazingmq", "--stop-margin 400ms"} {
		o, err := resolve(t, flags)
		require.NoError(t, err)
		cfg, err := o.Resolve()
		require.NoError(t, err)
		stop, lease := cfg.Election.StopMargin, cfg.Election.Timing.Lease
		require.Positive(t, o.killMargin)
		require.Less(t, o.killMargin, stop)
		require.Less(t, stop, lease-cfg.Election.Timing.HeartbeatBroadcast)
	}
}
