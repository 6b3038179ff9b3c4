package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// asNode is the first argument of this program when it is to be a node of this elector.
const asNode = "node"

// process is a running node of a cluster.
type process struct {
	cmd      *exec.Cmd
	commands io.WriteCloser
}

// event is a report of a node, or its end.
type event struct {
	node    int
	process *process
	report  node.Report
	ended   bool
}

// spawn starts a node that dies with this process, by way of the command within, if any. Its
// reports, and then its end, go to events.
func spawn(s system, spec node.Spec, within []string, log string, events chan<- event) (*process,
	error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if s.program != "" {
		program = filepath.Join(filepath.Dir(program), s.program)
	}
	argument, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	words := append(within, program, asNode, string(argument))
	p := &process{cmd: exec.Command(words[0], words[1:]...)}
	p.cmd.Stderr = out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.commands, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	reports, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(spec.Self, json.NewDecoder(reports), events)
	return p, nil
}

// read takes anything but a report for the end: a library has failed, and says so on the
// wrong stream.
func (p *process) read(index int, reports *json.Decoder, events chan<- event) {
	for e := (event{node: index, process: p}); !e.ended; events <- e {
		e.report = node.Report{}
		e.ended = reports.Decode(&e.report) != nil
	}
}

func (p *process) command(c string) error {
	_, err := fmt.Fprintln(p.commands, c)
	return err
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the process; it may be stopped, or have ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
