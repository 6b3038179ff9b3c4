package netmesh

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// callsBack is where a program's log goes to, which asks the mesh itself.
type callsBack struct{ ask atomic.Pointer[func()] }

func (c *callsBack) Write(b []byte) (int, error) {
	if ask := c.ask.Swap(nil); ask != nil {
		(*ask)()
	}
	return len(b), nil
}

// TestForgetHoldsUpNobodyByItsLog: a logger that blocks must not stop the heartbeats.
func TestForgetHoldsUpNobodyByItsLog(t *testing.T) {
	out := &callsBack{}
	a := start(t, "a", func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: out}) })
	b := start(t, "b")
	b.knows(a)
	a.sees(t, "b", "up 1")
	b.close(t)
	a.sees(t, "b", "down goodbye")
	held := false
	ask := func() {
		sent := make(chan bool)
		go func() { sent <- a.Send("b", "g", heartbeat(1)) }()
		select {
		case <-sent:
		case <-time.After(time.Second):
			held = true
			go func() { <-sent }()
		}
	}
	out.ask.Store(&ask)
	require.NoError(t, a.Forget("b", 0))
	require.Nil(t, out.ask.Load(), "it says so")
	require.False(t, held)
}
