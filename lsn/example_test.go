package lsn_test

import (
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/lsn"
)

// A leader stamps each message that it issues.
func ExampleSequencer() {
	var s lsn.Sequencer
	_ = s.Begin(5) // the cluster says: leader, term 5
	first, _ := s.Next()
	second, _ := s.Next()
	fmt.Println(first, second)

	s.End() // the leadership is over
	_, err := s.Next()
	fmt.Println(err)
	// Output:
	// 5.1 5.2
	// lsn: not leading
}

// A store refuses a leader that paused, was replaced and now goes on writing.
func ExampleFence() {
	var f lsn.Fence
	write := func(token lsn.LSN) {
		var stale *lsn.StaleError
		if err := f.Admit(token); errors.As(err, &stale) {
			fmt.Println("refused:", stale.Got, "is older than", stale.Newest)
			return
		}
		fmt.Println("written:", token)
	}
	write(lsn.LSN{Term: 5, Counter: 2})
	write(lsn.LSN{Term: 6, Counter: 1})
	write(lsn.LSN{Term: 5, Counter: 3})
	// Output:
	// written: 5.2
	// written: 6.1
	// refused: 5.3 is older than 6.1
}

func ExampleParse() {
	l, err := lsn.Parse("5.2")
	fmt.Println(l.Term, l.Counter, err)
	_, err = lsn.Parse("5.02")
	fmt.Println(err)
	// Output:
	// 5 2 <nil>
	// lsn: "5.02": counter: leading zero
}
