package guarded

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// Whatever is set anew or dropped, the first timer is the earliest, and Due finds all that are due.
func TestAQueueKnowsWhatIsDue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q Queue[int]
	timers := make([]Timer[int], 50)
	for range 5000 {
		if one := &timers[random.IntN(len(timers))]; random.IntN(4) == 0 {
			q.Drop(one)
		} else {
			q.Set(one, elector.Time(random.IntN(100)))
		}
		var due []elector.Time
		for i := range timers {
			if timers[i].Set() {
				due = append(due, timers[i].At)
			}
		}
		slices.Sort(due)
		due = append(due, elector.Never)
		require.Equal(t, due[0], q.Next())
		by := elector.Time(random.IntN(100))
		found := []elector.Time{}
		for _, one := range q.Due(by) {
			found = append(found, one.At)
		}
		slices.Sort(found)
		n, _ := slices.BinarySearch(due, by+1)
		require.Equal(t, due[:n:n], found)
	}
}
