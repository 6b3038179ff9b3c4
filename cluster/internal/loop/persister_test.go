package loop

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// up reserves the terms up to n.
func up(n lsn.Term) store.Durable { return store.Durable{Terms: elector.Terms{Reserved: n}} }

// with is up with a record, which n wrote, and its value.
func with(n lsn.Term, value string) store.Durable {
	d := up(n)
	d.Record.LSN, d.Value = lsn.LSN{Term: n, Counter: 1}, []byte(value)
	return d
}

// disk records writes; each waits until the test lets it go.
type disk struct {
	writes chan groups
	result chan error
}

func (d *disk) write(g groups) error {
	d.writes <- g
	return <-d.result
}

func startPersister(t *testing.T) (p *persister, d *disk, done chan error, ended chan struct{}) {
	d = &disk{writes: make(chan groups), result: make(chan error)}
	done, ended = make(chan error, 16), make(chan struct{})
	p = &persister{
		write: d.write, check: func() error { return nil }, pending: make(chan struct{}, 1),
		done: func(_ groups, err error) { done <- err },
	}
	quit := make(chan struct{})
	go func() { defer close(ended); p.run(quit) }()
	t.Cleanup(func() { close(quit); <-ended })
	return p, d, done, ended
}

func TestTermsAskedForDuringAWriteShareTheNextOne(t *testing.T) {
	p, d, done, _ := startPersister(t)
	p.request("x", up(1))
	require.Equal(t, groups{"x": up(1)}, <-d.writes)
	for term := lsn.Term(2); term <= 9; term++ {
		p.request("x", up(term))
	}
	p.request("y", up(4))
	d.result <- nil
	require.NoError(t, <-done)
	require.Equal(t, groups{"x": up(9), "y": up(4)}, <-d.writes,
		"one transaction, the newest terms")
	d.result <- nil
	require.NoError(t, <-done)
}

func TestARecordWaitsUntilItIsWrittenOrReplaced(t *testing.T) {
	p, d, done, _ := startPersister(t)
	p.request("x", up(1))
	<-d.writes
	p.request("x", with(2, "old"))
	p.request("x", with(3, "new"))
	p.request("x", up(9))
	p.request("y", up(4))
	d.result <- nil
	require.NoError(t, <-done)
	kept := with(3, "new")
	kept.Terms = up(9).Terms
	require.Equal(t, groups{"x": kept, "y": up(4)}, <-d.writes)
	p.request("x", up(10))
	d.result <- nil
	require.NoError(t, <-done)
	require.Equal(t, groups{"x": up(10)}, <-d.writes, "it was written")
	d.result <- nil
	require.NoError(t, <-done)
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	p, d, done, ended := startPersister(t)
	p.request("x", up(1))
	<-d.writes
	full := errors.New("disk full")
	d.result <- full
	require.ErrorIs(t, <-done, full)
	p.request("x", up(2))
	select {
	case w := <-d.writes:
		t.Fatalf("wrote %v after a failed fsync", w)
	case <-ended:
	}
}

func TestANoteIsWrittenInItsTurnAndItsFailureIsFinal(t *testing.T) {
	p, d, done, ended := startPersister(t)
	p.request("x", up(1))
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
