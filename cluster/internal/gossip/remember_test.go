package gossip

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// remembering runs a rememberer whose disk the test plays.
type remembering struct {
	*rememberer
	quit   chan struct{}
	log    bytes.Buffer
	mu     sync.Mutex // guards what follows
	disk   error
	writes []time.Time // that succeeded
	tries  int
}

func remember() *remembering {
	r := &remembering{quit: make(chan struct{})}
	save := func([]string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tries++
		if r.disk == nil {
			r.writes = append(r.writes, time.Now())
		}
		return r.disk
	}
	log := hclog.New(&hclog.LoggerOptions{Output: &r.log})
	r.rememberer = newRememberer(save, func() []string { return nil }, log)
	go r.run(r.quit)
	return r
}

func (r *remembering) breaks(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disk = err
}

func (r *remembering) end() {
	close(r.quit)
	<-r.done
}

func TestAddressesAreWrittenNoMoreThanOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := remember()
		for range 100 * 60 { // a minute
			wake(r.changed)
			time.Sleep(10 * time.Millisecond)
		}
		r.end()
		require.Len(t, r.writes, 7, "after 1 s, 11 s and so on, and at the end")
		for i := range r.writes[:5] {
			require.Equal(t, rememberEvery, r.writes[i+1].Sub(r.writes[i]))
		}
	})
}

func TestAddressesThatCannotBeWrittenAreTriedAgainQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := remember()
		r.breaks(errors.New("no space left"))
		wake(r.changed)
		time.Sleep(5*time.Minute - time.Second)
		synctest.Wait()
		require.Equal(t, 30, r.tries)
		require.Equal(t, 5, strings.Count(r.log.String(), "no space left"), r.log.String())
		r.breaks(nil)
		time.Sleep(rememberEvery)
		synctest.Wait()
		require.Len(t, r.writes, 1)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, r.writes, 1, "nothing has changed since")
		r.end()
	})
}

func TestAddressesOfVotersComeFirstAndTheOthersAreBounded(t *testing.T) {
	ms := newMembers(&Config{Voter: isOneOf("a", "z")}, hclog.NewNullLogger())
	ms.put(Member{Node: "z", GossipAddr: "voter", State: StateDead})
	for i := range 2 * maxOtherPeers {
		id := strconv.Itoa(i)
		ms.put(Member{Node: elector.NodeID(id), GossipAddr: id, State: StateAlive})
	}
	ms.put(Member{Node: "0 left", GossipAddr: "left", State: StateLeft})
	addrs := ms.toRemember()
	require.NotContains(t, addrs, "left")
	require.Len(t, addrs, 1+maxOtherPeers)
	require.Equal(t, "voter", addrs[0])
}

func isOneOf(voters ...elector.NodeID) func(elector.NodeID) bool {
	return func(node elector.NodeID) bool { return slices.Contains(voters, node) }
}
