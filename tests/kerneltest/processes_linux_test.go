package kerneltest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// start starts a process for each voter that has none.
func (r *rig) start(voters ...*voter) {
	self, err := os.Executable()
	require.NoError(r.t, err)
	for _, v := range voters {
		if v.cmd != nil {
			continue
		}
		r.started++
		program := []string{self}
		env := append(os.Environ(), v.env)
		if v.cfg.Exec {
			program, env = append(v.commandLine(), self), append(env, envCommand+"=1")
		} else {
			text, err := json.Marshal(v.cfg)
			require.NoError(r.t, err)
			env = append(env, envVoter+"="+string(text))
		}
		v.cmd = exec.Command("nsenter", append([]string{"--net=/run/netns/" + v.ns}, program...)...)
		v.cmd.Env = env
		log, err := os.OpenFile(v.cfg.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		require.NoError(r.t, err)
		v.cmd.Stderr = log
		v.orders, err = v.cmd.StdinPipe()
		require.NoError(r.t, err)
		told, err := v.cmd.StdoutPipe()
		require.NoError(r.t, err)
		if v.cfg.Exec {
			v.cmd.Stderr = v.cmd.Stdout // its log tells of transitions
		}
		require.NoError(r.t, v.cmd.Start())
		log.Close()
		v.heard = make(chan struct{})
		go r.listen(v, told, v.heard)
	}
}

// listen records what a process reports, until it has ended.
func (r *rig) listen(v *voter, told io.Reader, heard chan struct{}) {
	defer close(heard)
	log, err := os.OpenFile(v.cfg.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err) // a directory in memory
	}
	defer log.Close()
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		rec := record{}
		if t := transitionIn(lines.Bytes()); t != nil { // of bmqnode itself
			rec = record{Kind: moved, Moved: t}
		} else if json.Unmarshal(lines.Bytes(), &rec) != nil {
			rec = record{} // the last one, cut short by its death, or of the log
		}
		if v.cfg.Exec && rec.Kind != runs {
			fmt.Fprintf(log, "%.6f %s\n", float64(now())/1e9, lines.Bytes())
		}
		if rec.Node = v.name; rec.At == 0 {
			rec.At = now()
		}
		r.mu.Lock()
		switch rec.Kind {
		case opened:
			r.lives[v.name] = append(r.lives[v.name], life{rec.At, elector.Never})
		case closing:
			r.ends(v.name)
		case state:
			r.now[v.name] = rec
		case "": // another line of the log
		case failed:
			r.ends(v.name)
			r.records = append(r.records, rec)
		default:
			if rec.Moved != nil && v.cfg.Exec {
				r.now[v.name] = record{Leader: rec.Moved.Leader}
			}
			r.records = append(r.records, rec)
		}
		r.mu.Unlock()
	}
}

// ends records that a node ends now or later. The caller holds mu.
func (r *rig) ends(name string) {
	if l := r.lives[name]; len(l) > 0 {
		l[len(l)-1].To = min(l[len(l)-1].To, now())
	}
	delete(r.now, name)
}

func (r *rig) signal(sig syscall.Signal, voters ...*voter) {
	for _, v := range voters {
		if v.cmd != nil {
			_ = v.cmd.Process.Signal(sig) // a process that has ended is not there to be told
		}
	}
}

// tell gives an order to a voter's process.
func (r *rig) tell(v *voter, order ...any) {
	if v.cmd != nil {
		_, _ = fmt.Fprintln(v.orders, order...) // as above
	}
}

// noteEnd records that the caller is about to end a voter's process.
func (r *rig) noteEnd(v *voter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends(v.name)
}

// kill ends processes by SIGKILL, and waits for them.
func (r *rig) kill(voters ...*voter) {
	for _, v := range voters {
		if v.cmd != nil {
			r.noteEnd(v)
			r.signal(syscall.SIGKILL, v)
			if v.disk != nil {
				v.disk.goOn() // a process does not end before its disk has answered
			}
		}
	}
	r.reap(voters...)
}

// reap waits for processes that end.
func (r *rig) reap(voters ...*voter) {
	for _, v := range voters {
		if v.cmd == nil {
			continue
		}
		select {
		case <-v.heard:
		case <-time.After(time.Minute):
			left, _ := exec.Command("sh", "-c", "cat /proc/[0-9]*/stat").Output()
			r.signal(syscall.SIGKILL, r.voters...)
			for _, other := range r.voters {
				if other.disk != nil {
					other.disk.goOn() // so that all of them can end
				}
			}
			require.Fail(r.t, "what "+v.name+" started does not end", "%s", left)
		}
		_ = v.cmd.Wait() // by a signal, most often
		v.cmd = nil
	}
}

// restart starts the voters again whose process has ended by itself.
func (r *rig) restart() {
	for _, v := range r.voters {
		if v.cmd == nil {
			continue
		}
		select {
		case <-v.heard:
			r.ended++
			r.kill(v)
			r.start(v)
		default:
		}
	}
}

// mayEnd records that a node may end by itself, at an unknown time until the returned function is
// called.
func (r *rig) mayEnd(v *voter) (until func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.doubt[v.name])
	r.doubt[v.name] = append(r.doubt[v.name], life{now(), elector.Never})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.doubt[v.name][i].To = now()
	}
}
