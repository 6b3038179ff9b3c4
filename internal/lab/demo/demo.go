// Package demo runs an algorithm of the laboratory in a real node: over the mesh, on a real
// disk, by the real clock. What is the elector's alone has no effect: NotCandidate, Priority,
// campaigns and minimum terms. An algorithm's own disk is written by the node's driver, which
// waits for it: enough to show an algorithm, too slow to serve.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/regular"
	"github.com/bmqelect/bmqelect/internal/foreign"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/all"
)

// Check says why no mesh can run the algorithm of a name: there is none, or it needs a store
// beside the nodes.
func Check(name string) error {
	a, err := all.Find(name)
	switch {
	case err != nil:
	case a.Store != nil:
		err = fmt.Errorf("%s needs a store beside the nodes: replay and lab have one, a mesh has not",
			name)
	case a.Leased:
		err = fmt.Errorf("%s is what nodes run without it", name)
	}
	if err != nil {
		return fmt.Errorf("--algorithm: %w", err)
	}
	return nil
}

// Names are the algorithms that Check accepts.
func Names() []string {
	return slices.DeleteFunc(all.Names(), func(name string) bool { return Check(name) != nil })
}

// With returns a context in which nodes run the algorithm of a name, or ctx for "". The error
// is Check's.
func With(ctx context.Context, name string) (context.Context, error) {
	if name == "" {
		return ctx, nil
	}
	if err := Check(name); err != nil {
		return nil, err
	}
	a, err := all.Find(name)
	return foreign.With(ctx, foreign.Algorithm{Name: name, New: machines(a)}), err
}

// machines returns what makes the machines of an algorithm.
func machines(a algorithm.Algorithm) foreign.New {
	return func(s foreign.Setup) (foreign.Machine, error) {
		r := &runner{algorithm: a, setup: s, file: filepath.Join(s.Dir, a.Name+".state")}
		if s.Election.Observer() {
			return nil, fmt.Errorf("%s knows no observers: %s must be a voter", a.Name, s.Election.Self)
		}
		order := slices.Sorted(slices.Values(s.Election.Voters)) // the same on every node
		r.machine = a.New(algorithm.Config{Elector: s.Election, Order: order})
		return r, r.load()
	}
}

// runner is an algorithm in a node.
type runner struct {
	algorithm algorithm.Algorithm
	setup     foreign.Setup
	file      string // what the algorithm keeps on disk
	disk      algorithm.Disk
	machine   algorithm.Machine
	view      algorithm.View
	inbox     []algorithm.Received
	moves     []elector.Transition
}

func (r *runner) Receive(from elector.NodeID, body []byte) {
	message, err := r.decode(body)
	if err == nil { // a node that runs another algorithm says nothing to this one
		r.inbox = append(r.inbox, algorithm.Received{From: from, Message: message})
	}
}

func (r *runner) Step(now elector.Time, entropy uint64, in elector.Input) elector.Effects {
	r.moves = r.moves[:0]
	var first algorithm.Input = in
	if _, starts := in.(elector.Start); starts {
		first = algorithm.Start{Disk: r.disk, Clock: algorithm.Time(time.Now().UnixNano())}
	}
	wake := r.step(now, entropy, first)
	for _, message := range r.inbox {
		wake = r.step(now, entropy, message)
	}
	r.inbox = r.inbox[:0]
	return elector.Effects{Transitions: r.moves, Wake: wake}
}

// step lets the algorithm act on one input, and on what that makes durable. It returns when
// the algorithm wants a tick.
func (r *runner) step(now elector.Time, entropy uint64, in algorithm.Input) elector.Time {
	eff := r.machine.Step(now, entropy, in)
	r.note()
	r.send(eff.Messages)
	if eff.Persist == nil {
		r.send(eff.Durable)
		return eff.Wake
	}
	durable := append([]algorithm.Envelope(nil), eff.Durable...)
	if err := r.save(eff.Persist); err != nil {
		r.setup.Fail(fmt.Errorf("state of %s: %w", r.algorithm.Name, err))
		return eff.Wake // what must be durable is not said
	}
	r.send(durable)
	return r.step(now, entropy, elector.Persisted{})
}

// note turns a new view into a transition.
func (r *runner) note() {
	was, is := r.view, r.machine.View()
	if is == was {
		return
	}
	r.view = is
	r.moves = append(r.moves, elector.Transition{
		From: was.Role, To: is.Role, Reason: reason(was, is), Term: is.Term, Leader: is.Leader,
	})
}

// reason is the elector's nearest word for a change.
func reason(was, is algorithm.View) elector.Reason {
	switch {
	case was.Role == elector.Dormant:
		return elector.Started
	case is.Role == elector.Dormant:
		return elector.Stopped
	case is.Role == elector.Leader:
		return elector.Elected
	case was.Role == elector.Leader:
		return elector.LeaderPreempted
	case is.Role == elector.Candidate:
		return elector.Proposed
	case is.Leader != "":
		return elector.LeaderFound
	}
	return elector.LeaderUnavailable
}

func (r *runner) Status() elector.Status {
	return elector.Status{
		Role: r.view.Role, Term: r.view.Term, Leader: r.view.Leader,
		Quorum: r.setup.Election.QuorumSize(),
	}
}

func (r *runner) send(messages []algorithm.Envelope) {
	for _, e := range messages {
		if body, err := r.encode(e.Message); err == nil {
			r.setup.Send(e.To, body)
		}
	}
}

// load reads what the algorithm persisted last.
func (r *runner) load() error {
	text, err := regular.Read(r.file, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && r.algorithm.Disk == nil {
		err = errors.New("this algorithm keeps nothing on disk")
	}
	if err != nil {
		return fmt.Errorf("state of %s: %w", r.algorithm.Name, err)
	}
	disk := reflect.New(reflect.TypeOf(r.algorithm.Disk))
	if err := codec.NewDecoderBytes(text, msgpack).Decode(disk.Interface()); err != nil {
		return fmt.Errorf("state of %s: %s: %w", r.algorithm.Name, r.file, err)
	}
	r.disk = disk.Elem().Interface()
	return nil
}

const maxState = 1 << 20 // bytes

// save makes a state durable.
func (r *runner) save(disk algorithm.Disk) error {
	temporary := r.file + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(codec.NewEncoder(file, msgpack).Encode(disk), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, r.file)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(r.setup.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close()) // the new name of the file
}

var msgpack = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.RawToString = true
	return h
}()

// prefix begins all messages of an algorithm: others, in a mesh that mixes them, are not read.
func (r *runner) prefix() []byte { return []byte(r.algorithm.Name + " ") }

// encode writes the algorithm, which of its messages it is, and the message.
func (r *runner) encode(m algorithm.Message) ([]byte, error) {
	for i, kind := range r.algorithm.Messages {
		if reflect.TypeOf(kind) == reflect.TypeOf(m) {
			body := bytes.NewBuffer(append(r.prefix(), byte(i)))
			err := codec.NewEncoder(body, msgpack).Encode(m)
			return body.Bytes(), err
		}
	}
	return nil, fmt.Errorf("%s has no message %T", r.algorithm.Name, m)
}

func (r *runner) decode(body []byte) (algorithm.Message, error) {
	body, mine := bytes.CutPrefix(body, r.prefix())
	if !mine || len(body) == 0 || int(body[0]) >= len(r.algorithm.Messages) {
		return nil, errors.New("not a message of this algorithm")
	}
	m := reflect.New(reflect.TypeOf(r.algorithm.Messages[body[0]]))
	if err := codec.NewDecoderBytes(body[1:], msgpack).Decode(m.Interface()); err != nil {
		return nil, err
	}
	return m.Elem().Interface().(algorithm.Message), nil
}
