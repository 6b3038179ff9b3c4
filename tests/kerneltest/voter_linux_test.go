package kerneltest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/certify"
	"github.com/bmqelect/bmqelect/lsn"
)

// voterConfig is the configuration of a voter's process.
type voterConfig struct {
	Config cluster.Config
	Groups int    // further elections, for their traffic
	Log    string // a file
	TLSDir string // of its certificate; "" for none
	// Supervised gives the process a parent that certifies its death to the others.
	Supervised bool
	Register   string // address of the register for guarded work; "" for none
	Exec       bool   // it is `bmqnode exec`, with a command that says when it runs
	Publishes  bool   // values, and reads the record
}

// speaker is a voter's process: it reports, and carries out orders.
type speaker struct {
	cfg  voterConfig
	log  *os.File
	node *cluster.Node
	mu   sync.Mutex
	// closing is set if an order closes the node. Each node has its own.
	closing *atomic.Bool
	register
}

func beVoter(text string) {
	s := &speaker{}
	s.check(json.Unmarshal([]byte(text), &s.cfg))
	var err error
	switch {
	case s.cfg.Supervised && !certify.IsChild():
		code, err := certify.Run(os.Args[1:])
		s.check(err)
		os.Exit(code)
	case s.cfg.Supervised:
		s.cfg.Config.HoldEvidence, err = certify.Hold()
		s.check(err)
	}
	s.log, err = os.OpenFile(s.cfg.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	s.check(err)
	s.cfg.Config.Logger = hclog.New(&hclog.LoggerOptions{
		JSONFormat: true, Output: s, Level: hclog.Debug,
	})
	if s.cfg.TLSDir != "" {
		s.cfg.Config.TLS = cluster.TLSDir(s.cfg.TLSDir)
	}
	s.open()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		s.obey(strings.Fields(in.Text()))
	}
	os.Exit(0) // the test has ended
}

func (s *speaker) check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "voter", s.cfg.Config.Node, "fails:", err)
		os.Exit(1)
	}
}

func (s *speaker) say(r record) {
	if r.At == 0 {
		r.At = now()
	}
	line, err := json.Marshal(r)
	s.check(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n')) // nobody listens: the test has ended
}

// Write takes a line of the log.
func (s *speaker) Write(line []byte) (int, error) {
	at := now()
	var l struct {
		Message string `json:"@message"`
		Peer    string
		Kept    bool
	}
	s.check(json.Unmarshal(line, &l))
	if t := transitionIn(line); t != nil {
		s.say(record{Kind: moved, At: at, Moved: t})
	}
	switch {
	case l.Message == connected && l.Kept, l.Message == provable, l.Message == lost,
		l.Message == proven:
		s.say(record{Kind: l.Message, At: at, Peer: l.Peer})
	}
	_, err := fmt.Fprintf(s.log, "%.6f %s", float64(at)/1e9, line)
	return len(line), err
}

// open starts the node. It retries, since the work of the last node may still go on.
func (s *speaker) open() {
	began := now()
	for tries := 0; ; tries++ {
		node, err := cluster.Start(context.Background(), s.cfg.Config)
		if err == nil {
			s.node = node
			break
		}
		if tries == 0 {
			fmt.Fprintf(s.log, "%.6f does not start: %v\n", float64(now())/1e9, err)
		}
		if tries == 1000 {
			s.check(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.say(record{Kind: opened, At: began})
	for i := range s.cfg.Groups {
		_, err := s.node.Election(fmt.Sprintf("g%d", i), s.cfg.Config.Election)
		s.check(err)
	}
	s.closing = new(atomic.Bool)
	go s.watchState(s.node, s.closing)
	go s.work(s.node)
	if s.cfg.Publishes {
		go s.publishAll(s.node)
	}
	n := s.node
	go s.watch(leads, n.Done(), func() (lsn.LSN, bool) {
		yes := n.IsLeader()
		token, err := n.NextLSN()
		if err != nil {
			token = lsn.LSN{}
		}
		return token, yes
	})
}

func (s *speaker) watchState(n *cluster.Node, closing *atomic.Bool) {
	for last := (record{}); ; time.Sleep(10 * time.Millisecond) {
		select {
		case <-n.Done():
			s.say(record{Kind: state})
			if !closing.Load() { // such as with its disk
				s.say(record{Kind: failed})
				os.Exit(3)
			}
			return
		default:
		}
		st, r := n.Status(), record{Kind: state}
		r.Leader = string(st.Groups[0].Leader)
		for _, g := range st.Groups {
			if g.Group == cluster.DefaultGroup {
				r.Leader = string(g.Leader)
			}
		}
		for _, m := range st.Members {
			if m.Link == "up" {
				r.Links++
			}
		}
		if r != last {
			last = r
			s.say(r)
		}
	}
}

// work is guarded work that takes tokens. It stops when it is told to, or at the last moment if
// the lease runs out.
func (s *speaker) work(n *cluster.Node) {
	for n.Err() == nil {
		l, err := n.Default().Campaign(context.Background())
		if err != nil { // it is closed, or no voter at the moment
			time.Sleep(20 * time.Millisecond)
			continue
		}
		take := func() (lsn.LSN, bool) {
			token, err := l.NextLSN()
			return token, err == nil
		}
		if s.cfg.Register != "" {
			go s.writeAll(l)
		}
		if s.cfg.Publishes {
			go s.readRecord(l)
		}
		s.watch(works, l.Context().Done(), take)
		if l.Reason() == elector.LeaseExpired {
			s.watch(works, l.Done(), take)
		}
		l.Release()
	}
}

// watch calls ask again and again until end. It reports the times in which all answers were yes in
// one term: from the end of the first call to the start of the last.
func (s *speaker) watch(kind string, end <-chan struct{}, ask func() (lsn.LSN, bool)) {
	var r record       // of the claim that goes on, if From is not 0
	var before lsn.LSN // the token of the call before
	finish := func() {
		if r.To > r.From || r.Yes > 0 && kind == leads {
			s.say(r)
		}
		r = record{}
	}
	defer finish()
	was, last := false, elector.Time(0)
	for pause := time.Duration(0); ; time.Sleep(pause) {
		began := now()
		token, yes := ask()
		ended := now()
		if yes && kind == leads && (token.IsZero() || !was || began.Sub(last) > 2*time.Millisecond) {
			// The first answer, or the first one after the process was stopped.
			s.say(record{Kind: answer, From: began, To: ended})
		}
		was, last = yes, ended
		if yes = yes && !token.IsZero(); !yes || token.Term != before.Term {
			finish()
		}
		switch pause = 100 * time.Microsecond; {
		case !yes:
			pause = time.Millisecond
		case r.From == 0:
			r = record{Kind: kind, From: ended, Yes: 1}
		default:
			r.Yes++
			if r.First.IsZero() {
				r.First = token
			}
			r.To, r.Last = began, before
		}
		before = token
		if r.To.Sub(r.From) > 20*time.Millisecond { // told piece by piece: it may be killed
			s.say(r)
			r = record{Kind: kind, From: began, First: token}
		}
		select {
		case <-end:
			return
		default:
		}
	}
}

// obey carries out an order of the test.
func (s *speaker) obey(order []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch order[0] {
	case "abandon": // close without waiting
		cancel()
		fallthrough
	case "close":
		s.closing.Store(true)
		s.say(record{Kind: closing})
		_ = s.node.Close(ctx) // it may end before the node has handed over
		s.open()
	case "transfer":
		go func() { _ = s.node.Transfer(context.WithoutCancel(ctx), cluster.NodeID(order[1])) }()
	case "stepdown":
		go func() { _ = s.node.Default().StepDown(context.WithoutCancel(ctx), time.Second) }()
	case "turn": // a voter into an observer, or back
		go s.turn(s.node, cluster.NodeID(order[1]))
	case "panic":
		panic("as ordered")
	case "exec": // another program takes the process over
		unix.CloseOnExec(int(os.Stdout.Fd()))
		s.check(syscall.Exec("/bin/sleep", []string{"sleep", "1000"}, nil))
	case "limit": // the address space, and meet it
		s.check(unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}))
		fallthrough
	case "eat": // memory, until the kernel or Go's runtime kills the process
		for all := [][]byte{}; ; {
			all = append(all, make([]byte, 1<<20))
			for i := 0; i < 1<<20; i += 4096 {
				all[len(all)-1][i] = 1
			}
		}
	}
}
