package exec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/exec/supervisor"
	"github.com/bmqelect/bmqelect/internal/daemon/service"
)

func TestTheLogSaysHowACommandEnded(t *testing.T) {
	for want, result := range map[string]supervisor.Result{
		"[WARN]  command not started: the lease has ended\n":              {Expired: true, Err: supervisor.ErrLate},
		"[WARN]  command killed before the end of its lease\n":            {Expired: true},
		"[ERROR] command failed to run under its supervisor: error=why\n": {Err: errors.New("why")},
		"[INFO]  command ended\n":                                         {},
	} {
		var out bytes.Buffer
		log := hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true})
		(&executor{Daemon: &service.Daemon{Log: log}}).report(result)
		require.Equal(t, want, out.String())
	}
}
