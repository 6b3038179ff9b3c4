package procs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Node is a process of a mesh, or the place for one.
type Node struct {
	Name                            string
	GossipAddr, MeshAddr, AdminAddr string
	Dir, ConfigFile                 string
	Binary                          string // what Start runs; at first Config.Binary
	mesh                            *Mesh
	mu                              sync.Mutex
	running                         *process // nil if there is none
}

type process struct {
	*os.Process
	gone chan struct{} // closed when it has ended and OnExit has been told
}

// Start starts the node's process, again after each end. The process has a group of its own: Ctrl-C
// on a terminal reaches only this process, which then stops the node in good order. The node does
// not outlive this process.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running != nil {
		return fmt.Errorf("node %s runs already, as process %d", n.Name, n.running.Pid)
	}
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	log, err := os.OpenFile(filepath.Join(n.Dir, "node.log"), flags, 0o600)
	if err != nil {
		return fmt.Errorf("log of node %s: %w", n.Name, err)
	}
	cmd := exec.Command(n.Binary, "run", "--config", n.ConfigFile)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	r, w, err := os.Pipe()
	if err != nil {
		log.Close()
		return fmt.Errorf("start of node %s: %w", n.Name, err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	started, gone := make(chan error), make(chan struct{})
	go func() {
		// The kernel ends the child when the thread that started it ends. This thread lives until the
		// child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(gone)
		defer log.Close()
		defer r.Close()
		err := cmd.Start()
		w.Close()
		started <- err
		if err != nil {
			return
		}
		n.readLines(io.TeeReader(r, log))
		err = cmd.Wait()
		n.mu.Lock()
		n.running = nil
		n.mu.Unlock()
		if f := n.mesh.cfg.OnExit; f != nil {
			f(n.Name, err)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start of node %s: %w", n.Name, err)
	}
	n.running = &process{Process: cmd.Process, gone: gone}
	return nil
}

// readLines reads the output until all processes that have it have ended.
func (n *Node) readLines(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if f := n.mesh.cfg.OnLine; f != nil {
			f(parseLine(n.Name, lines.Bytes()))
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line was too long to scan, and the child must not block
}

func (n *Node) process() (*process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running == nil {
		return nil, fmt.Errorf("node %s does not run", n.Name)
	}
	return n.running, nil
}

// Pid is the process ID, or 0 if the node does not run.
func (n *Node) Pid() int {
	p, err := n.process()
	if err != nil {
		return 0
	}
	return p.Pid
}

// Signal sends sig to the node's process.
func (n *Node) Signal(sig syscall.Signal) error {
	p, err := n.process()
	if err != nil {
		return err
	}
	return p.Signal(sig)
}

// Kill ends the process as a crash would, and waits until it is gone.
func (n *Node) Kill() error {
	p, err := n.process()
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	<-p.gone
	return nil
}

// Stop asks the process to hand over and exit, and kills it if it still runs at the end of ctx. It
// is no error if no process runs.
func (n *Node) Stop(ctx context.Context) error {
	p, err := n.process()
	if err != nil {
		return nil
	}
	_ = p.Signal(syscall.SIGCONT) // a paused one could not stop
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
	}
	_ = p.Kill()
	<-p.gone
	return fmt.Errorf("node %s did not stop in time and was killed", n.Name)
}

// Client returns a client for the node's admin side.
func (n *Node) Client() *admin.Client { return admin.NewClient(n.AdminAddr) }

// Status returns the status of the node's process.
func (n *Node) Status(ctx context.Context) (cluster.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return n.Client().Status(ctx)
}

// Line is one line of a process's output.
type Line struct {
	Node    string
	Text    string // the line as it was written
	Time    time.Time
	Level   string // trace, debug, info, warn or error; "" if it is no log line
	Message string // "" if it is no log line
	Detail  string // the other fields, for people

	event admin.Event // if it tells of a transition
}

// Transition returns the transition that the line tells of; ok is false if it tells of
// something else.
func (l Line) Transition() (e admin.Event, ok bool) { return l.event, l.Message == "transition" }

// parseLine parses a line that a node logs as JSON.
func parseLine(node string, text []byte) Line {
	line := Line{Node: node, Text: string(text), Time: time.Now()}
	var log struct {
		Level   string    `json:"level"`
		Message string    `json:"msg"`
		Time    time.Time `json:"time"`
	}
	if err := json.Unmarshal(text, &log); err != nil || log.Message == "" {
		return line
	}
	line.Time, line.Level, line.Message = log.Time, log.Level, log.Message
	if line.Message == "transition" && json.Unmarshal(text, &line.event) == nil {
		line.event.Time, line.event.Node = log.Time, cluster.NodeID(node)
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a large term must not become 1e+06
	_ = dec.Decode(&fields)
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"time", "level", "msg", "logger", "node"}, k) {
			parts = append(parts, fmt.Sprintf("%s=%v", k, fields[k]))
		}
	}
	line.Detail = strings.Join(parts, " ")
	return line
}
