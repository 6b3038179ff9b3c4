package node

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Main is the main function of a process of a node: its spec is the argument, in JSON.
// It ends when its standard input does.
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
	member, err := start(spec, (&observer{last: "?"}).saw)
	if err != nil {
		return err
	}
	var work *worker
	if spec.Work != nil {
		if work, err = begin(spec, member); err != nil {
			return err
		}
	}
	w := watcher{member: member}
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch c := commands.Text(); c {
		case AskLeads:
			write(Report{Kind: Answer, Yes: member.Leads()})
		case HandOver:
			go func() {
				if err := member.HandOver(); err != nil {
					write(Report{Kind: Failed, Text: err.Error()})
				}
			}()
		case Sum:
			sums := member.(Summer).Sum()
			write(Report{Kind: Summed, Sums: &sums})
		case Leave:
			return member.(Summer).Close(context.Background())
		case Watch:
			w.begin()
		case Deadlock:
			go work.items.Lock()
		case Unwatch:
			for _, span := range w.end() {
				write(span)
			}
			write(Report{Kind: Watched})
		default:
			if err := keep(member, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep carries out a command about values.
func keep(member Member, command string) error {
	report := Report{Kind: Wrote, From: Now()}
	var err error
	if text, ok := strings.CutPrefix(command, Write); ok {
		var load Load
		if err = json.Unmarshal([]byte(text), &load); err == nil {
			report.Took, err = load.run(member.(Writer))
		}
	} else if text, ok := strings.CutPrefix(command, Grow); ok {
		var index int
		if index, err = strconv.Atoi(text); err == nil {
			_, err = (&Load{Places: 1, Size: 1 << 20}).run(member.(Writer))
		}
		if err == nil {
			err = member.(Grower).Grow(context.Background(), index)
		}
	} else {
		return fmt.Errorf("no command %q", command)
	}
	if report.To = Now(); err != nil {
		report = Report{Kind: Failed, Text: err.Error()}
	}
	write(report)
	return nil
}

// run writes, and returns how long each write took.
func (l Load) run(w Writer) (took []time.Duration, err error) {
	var places sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(l.For)
	for place := range l.Places {
		places.Go(func() {
			var own []time.Duration
			var failed error
			for began := time.Now(); failed == nil && (own == nil || began.Before(end)); {
				value := make([]byte, l.Size) // the same one again might cost less
				binary.BigEndian.PutUint64(value, rand.Uint64())
				failed = w.Write(context.Background(), place, value)
				now := time.Now()
				own, began = append(own, now.Sub(began)), now
			}
			mu.Lock()
			defer mu.Unlock()
			took, err = append(took, own...), errors.Join(err, failed)
		})
	}
	places.Wait()
	return took, err
}

// write writes a report at once, so that a process that is killed leaves no half of one.
func write(r Report) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // a report has only text and numbers
	}
	fmt.Printf("%s\n", line)
}

// observer reports each leader that differs from the last one.
type observer struct {
	mu   sync.Mutex
	last string
}

func (o *observer) saw(leader string) {
	now := Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if leader != o.last {
		o.last = leader
		write(Report{Kind: Saw, From: now, Text: leader})
	}
}

// watcher samples what a member answers.
type watcher struct {
	member   Member
	stop     atomic.Bool
	sampling sync.WaitGroup
	spans    []Report
}

// pause is the time between two samples.
const pause = 100 * time.Microsecond

func (w *watcher) begin() {
	w.end() // a trial that failed has left it running
	w.stop.Store(false)
	w.spans = nil
	w.sampling.Go(func() {
		for yes := false; !w.stop.Load(); time.Sleep(pause) {
			yes = w.sample(yes)
		}
	})
}

// sample extends the last span if the answer before was yes, too. A span begins after its
// first answer and ends before its last one, so that no overlap is reported that was none.
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
	w.stop.Store(true)
	w.sampling.Wait()
	return w.spans
}
