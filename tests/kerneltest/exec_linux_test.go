package kerneltest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// bmqnode is the path of the command; "" if it is not to be tested.
var bmqnode = os.Getenv("KERNELTEST_BMQNODE")

// commandLine returns that of `bmqnode exec`, without the command that it is to run.
func (v *voter) commandLine() []string {
	c := v.cfg.Config
	var voters []string
	for _, id := range c.Voters {
		voters = append(voters, string(id))
	}
	t := c.Election.Timing
	args := []string{bmqnode, "exec", "--insecure", "--log-format=json", "--restart=always",
		"--restart-delay=50ms", "--shutdown-timeout=1s",
		"--node=" + string(c.Node), "--voters=" + strings.Join(voters, ","),
		"--data-dir=" + c.DataDir, "--join=" + strings.Join(c.Join, ","),
		"--gossip-addr=" + c.GossipAddr, "--mesh-addr=" + c.MeshAddr,
		fmt.Sprint("--heartbeat-miss-count=", t.HeartbeatMissCount)}
	for name, d := range map[string]time.Duration{
		"initial-wait": t.InitialWait, "min-random-wait": t.MinRandomWait,
		"max-random-wait": t.MaxRandomWait, "scouting-result": t.ScoutingResult,
		"election-result": t.ElectionResult, "heartbeat-broadcast": t.HeartbeatBroadcast,
		"lease": t.Lease,
	} {
		args = append(args, fmt.Sprint("--", name, "=", d))
	}
	return append(args, "--")
}

// beCommand reports again and again that it runs. After SIGTERM it stops at once, later or never.
func beCommand() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	var stop <-chan time.Time
	for from := now(); ; {
		select {
		case <-told:
			wait := []time.Duration{0, 200 * time.Millisecond, time.Hour}[rand.IntN(3)]
			stop = time.After(wait)
		case <-stop:
			os.Exit(0) // a return would run the tests
		case <-time.After(5 * time.Millisecond):
		}
		// The command counts as running between two reports, even if it was stopped.
		to := now()
		line, _ := json.Marshal(record{Kind: runs, At: to, From: from, To: to, Process: os.Getpid()})
		_, _ = os.Stdout.Write(append(line, '\n')) // nobody listens: the test has ended
		from = to
	}
}
