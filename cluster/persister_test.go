package cluster

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

// disk records writes; each waits until the test lets it go.
type disk struct {
	writes chan map[string]lsn.Term
	result chan error
}

func (d *disk) write(terms map[string]lsn.Term) error {
	d.writes <- terms
	return <-d.result
}

func startPersister(t *testing.T) (p *persister, d *disk, done chan error, ended chan struct{}) {
	d = &disk{writes: make(chan map[string]lsn.Term), result: make(chan error)}
	done, ended = make(chan error, 16), make(chan struct{})
	p = newPersister(d.write, func(_ map[string]lsn.Term, err error) { done <- err })
	quit := make(chan struct{})
	go func() { defer close(ended); p.run(quit) }()
	t.Cleanup(func() { close(quit); <-ended })
	return p, d, done, ended
}

func TestTermsAskedForDuringAWriteShareTheNextOne(t *testing.T) {
	p, d, done, _ := startPersister(t)
	p.request("x", 1)
	require.Equal(t, map[string]lsn.Term{"x": 1}, <-d.writes)
	for term := lsn.Term(2); term <= 9; term++ {
		p.request("x", term)
	}
	p.request("y", 4)
	d.result <- nil
	require.NoError(t, <-done)
	require.Equal(t, map[string]lsn.Term{"x": 9, "y": 4}, <-d.writes,
		"one transaction, the newest terms")
	d.result <- nil
	require.NoError(t, <-done)
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	p, d, done, ended := startPersister(t)
	p.request("x", 1)
	<-d.writes
	full := errors.New("disk full")
	d.result <- full
	require.ErrorIs(t, <-done, full)
	p.request("x", 2)
	select {
	case w := <-d.writes:
		t.Fatalf("wrote %v after a failed fsync", w)
	case <-ended:
	}
}

func TestANoteIsWrittenInItsTurnAndItsFailureIsFinal(t *testing.T) {
	p, d, done, ended := startPersister(t)
	p.request("x", 1)
	<-d.writes
	full := errors.New("disk full")
	var order []string
	p.note(func() error { order = append(order, "one"); return nil })
	p.note(func() error { order = append(order, "two"); return full })
	p.note(func() error { order = append(order, "three"); return nil })
	d.result <- nil
	require.NoError(t, <-done)
	require.ErrorIs(t, <-done, full)
	<-ended
	require.Equal(t, []string{"one", "two"}, order)
}
