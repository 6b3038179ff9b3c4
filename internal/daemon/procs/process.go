package procs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// process is one running child.
type process struct {
	cmd   *exec.Cmd
	files []io.Closer
	read  sync.WaitGroup
	gone  chan struct{} // closed when it has ended and OnExit has been told
}

// launch starts the node's child. It is a process group of its own, so that
// Ctrl-C on a terminal reaches only the parent, who then stops it in good order,
// and it does not outlive the parent.
func launch(n *Node) (*process, error) {
	log, err := os.OpenFile(filepath.Join(n.Dir, "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of node %s: %w", n.Name, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("output of node %s: %w", n.Name, err)
	}
	p := &process{cmd: exec.Command(n.mesh.cfg.Binary, "run", "--config", n.ConfigFile), gone: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)
	err = p.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		log.Close()
		return nil, fmt.Errorf("start of node %s: %w", n.Name, err)
	}
	p.files = []io.Closer{r, log}
	p.read.Go(func() { readLines(io.TeeReader(r, log), n.Name, n.mesh.cfg.OnLine) })
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// wait returns when the child has ended and all that it wrote has been read.
func (p *process) wait() error {
	p.read.Wait()
	err := p.cmd.Wait()
	for _, f := range p.files {
		f.Close()
	}
	return err
}

func readLines(r io.Reader, node string, f func(Line)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if f != nil {
			f(parseLine(node, lines.Bytes()))
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line too long to scan: the child must not block
}
