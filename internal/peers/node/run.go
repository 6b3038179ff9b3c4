package node

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Main is the main function of a process of a node: its spec is the argument, in JSON.
// It ends with its standard input.
func Main(argument string, start Start) {
	signal.Ignore(syscall.SIGINT) // of the terminal; the parent decides
	if err := run(argument, start); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(argument string, start Start) error {
	var spec Spec
	if err := json.Unmarshal([]byte(argument), &spec); err != nil {
		return fmt.Errorf("the argument must be a spec of a node in JSON: %w", err)
	}
	out := &reporter{last: "?"}
	member, err := start(spec, out.saw)
	if err != nil {
		return err
	}
	w := watcher{member: member}
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch c := commands.Text(); c {
		case AskLeads:
			out.write(Report{Kind: Answer, Yes: member.Leads()})
		case HandOver:
			go func() {
				if err := member.HandOver(); err != nil {
					out.write(Report{Kind: Failed, Text: err.Error()})
				}
			}()
		case Watch:
			w.begin()
		case Unwatch:
			for _, span := range w.end() {
				out.write(span)
			}
			out.write(Report{Kind: Watched})
		default:
			return fmt.Errorf("no command %q", c)
		}
	}
	return nil
}

// reporter writes each report with one write, so a process that is killed leaves no half of one.
type reporter struct {
	mu   sync.Mutex
	last string // leader
}

func (r *reporter) write(report Report) {
	_ = json.NewEncoder(os.Stdout).Encode(report) // the parent is gone: this process ends, too
}

// saw reports a leader, with the time, if it is another than the last one.
func (r *reporter) saw(leader string) {
	now := Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if leader != r.last {
		r.last = leader
		r.write(Report{Kind: Saw, From: now, Text: leader})
	}
}

// watcher samples what a member answers.
type watcher struct {
	member     Member
	stop, done chan struct{}
	spans      []Report
}

// sampling is the pause between two samples.
const sampling = 100 * time.Microsecond

func (w *watcher) begin() {
	w.stop, w.done, w.spans = make(chan struct{}), make(chan struct{}), nil
	go func() {
		defer close(w.done)
		for yes := false; ; time.Sleep(sampling) {
			select {
			case <-w.stop:
				return
			default:
			}
			yes = w.sample(yes)
		}
	}()
}

// sample extends the last span if the answer before was yes, too. A span begins after
// its first answer and ends before its last one, so nothing is taken for overlap that
// was none.
func (w *watcher) sample(before bool) bool {
	asked := Now()
	if !w.member.Leads() {
		return false
	}
	if !before {
		w.spans = append(w.spans, Report{Kind: Led, From: Now()})
	}
	span := &w.spans[len(w.spans)-1]
	span.To = max(asked, span.From)
	return true
}

func (w *watcher) end() []Report {
	close(w.stop)
	<-w.done
	return w.spans
}
