package lsn_test

import (
	"errors"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

func at(term lsn.Term, counter uint64) lsn.LSN { return lsn.LSN{Term: term, Counter: counter} }

func TestFenceRefusesAReplacedLeader(t *testing.T) {
	var f lsn.Fence
	require.NoError(t, f.Admit(at(3, 9)))
	require.NoError(t, f.Admit(at(4, 1)), "the next leader starts its counter again")

	err := f.Admit(at(3, 10))
	var stale *lsn.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, lsn.StaleError{Got: at(3, 10), Newest: at(4, 1)}, *stale)
	require.EqualError(t, err, "lsn: stale: got 3.10 after 4.1; if every data directory was lost, "+
		"start the nodes with a minimum term above 4 (MinTerm, --min-term): "+
		"docs/operations.md#all-disks-are-gone")
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n## All disks are gone\n")
	require.Equal(t, at(4, 1), f.Newest(), "a refusal changes nothing")
}

func TestFenceAndRepeats(t *testing.T) {
	var f lsn.Fence
	require.NoError(t, f.AdmitNew(at(3, 1)))
	require.NoError(t, f.Admit(at(3, 1)), "a lock token is shown with every request")

	var stale *lsn.StaleError
	require.ErrorAs(t, f.AdmitNew(at(3, 1)), &stale, "a message takes effect once")
	require.Equal(t, stale.Got, stale.Newest)
	require.NoError(t, f.AdmitNew(at(3, 2)))
	require.ErrorAs(t, f.Admit(at(3, 1)), &stale)
	require.EqualError(t, stale, "lsn: stale: got 3.1 after 3.2", "its own leadership went on")
}

func TestFenceRefusesWhatIsOfNoLeadership(t *testing.T) {
	for _, l := range []lsn.LSN{{}, at(0, 5), at(lsn.MaxTerm+1, 1), at(math.MaxUint64, 1)} {
		var f lsn.Fence
		for _, admit := range []func(lsn.LSN) error{f.Admit, f.AdmitNew} {
			err := admit(l)
			require.ErrorContains(t, err, l.String()+" is of no leadership")
			require.False(t, errors.As(err, new(*lsn.StaleError)))
			require.Zero(t, f.Newest())
		}
	}
}

// TestFenceAdmitsEachMessageOnce sends the same messages from several
// goroutines at once.
func TestFenceAdmitsEachMessageOnce(t *testing.T) {
	const senders, messages = 4, 1000
	var f lsn.Fence
	admitted := make([][]lsn.LSN, senders)
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for n := range uint64(messages) {
				if f.AdmitNew(at(1, n)) == nil {
					admitted[i] = append(admitted[i], at(1, n))
				}
			}
		})
	}
	wg.Wait()

	seen := make(map[lsn.LSN]bool)
	for _, byOne := range admitted {
		requireRising(t, byOne)
		for _, l := range byOne {
			require.False(t, seen[l], "%s admitted twice", l)
			seen[l] = true
		}
	}
	require.Equal(t, at(1, messages-1), f.Newest())
}
