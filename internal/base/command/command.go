// Package command runs short commands of an operator: hooks and health probes.
package command

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"
)

const (
	// outputDelay bounds the wait for output of processes that a command left in the background.
	outputDelay = 200 * time.Millisecond
	tailSize    = 4096
)

// Run runs a command with these variables (nil: those of this process), and kills its process
// group when ctx ends. It does not wait for processes that the command leaves in the background.
// The output is the end of what the command wrote to stdout and stderr, at most 4096 bytes,
// without space around it. Run may be called from any goroutine.
func Run(ctx context.Context, env []string, argv ...string) (output string, err error) {
	var out tail
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &out
	cmd.WaitDelay = outputDelay
	ownGroup(cmd)
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return strings.TrimSpace(string(out)), err
}

// tail keeps the end of its input.
type tail []byte

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(len(*t)-tailSize, 0):]
	return len(p), nil
}
