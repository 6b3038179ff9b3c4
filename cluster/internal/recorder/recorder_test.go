package recorder

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

func inDir(t *testing.T, found func(string)) (r *Recorder, dir string) {
	dir = t.TempDir()
	age := func() time.Duration { return 0 }
	return New(Config{Dir: dir, Node: "a", Boot: 3, Age: age, Found: found,
		Faults: func() string { return "" }}), dir
}

func TestTheHistoryOutlivesANoisyNight(t *testing.T) {
	r, dir := inDir(t, nil)
	r.write(&recording.Record{Kind: recording.Started, Age: 0})
	r.write(&recording.Record{Kind: recording.Transition, Group: "g", To: "LEADER", Leader: "a",
		Term: 7, Reason: "ELECTED", Age: 1})
	for n := range 20_000 {
		r.write(&recording.Record{Kind: recording.LinkDown, Peer: "b", Why: "timeout",
			Age: float64(n + 2)})
	}
	records, _, err := recording.Read(dir, recording.Recording)
	require.NoError(t, err)
	require.Less(t, len(records), 20_000, "the recording has turned")
	records, _, err = recording.Read(dir, recording.History)
	require.NoError(t, err)
	led := recording.Leaderships(records)
	require.Len(t, led, 1)
	require.EqualValues(t, 7, led[0].Term)
	require.Zero(t, r.Lost())
}

func TestADiskThatIsSlowOrRefusesCostsRecordsOnly(t *testing.T) {
	var said string
	r, dir := inDir(t, func(why string) { said = why })
	for range room + 44 { // nobody writes, and nobody waits
		r.Record(recording.Record{Kind: recording.Held})
	}
	require.EqualValues(t, 44, r.Lost())
	require.NoError(t, os.Mkdir(filepath.Join(dir, string(recording.Recording)), 0o700))
	quit := make(chan struct{})
	close(quit)
	r.Run(quit)
	require.EqualValues(t, room+44, r.Lost())
	require.Contains(t, said, "it cannot record what happens")
	require.Contains(t, said, string(recording.Recording))
}

// Records of links name the faults of a rehearsal that are in effect.
func TestLinksAreRecordedWithTheirFaults(t *testing.T) {
	r, dir := inDir(t, nil)
	r.cfg.Faults = func() string { return "b is cut off" }
	kinds := []recording.Kind{recording.LinkUp, recording.LinkDown, recording.Died, recording.Held}
	for _, kind := range kinds {
		r.Record(recording.Record{Kind: kind})
	}
	quit := make(chan struct{})
	close(quit)
	r.Run(quit)
	records, _, err := recording.Read(dir, recording.Recording)
	require.NoError(t, err)
	require.Len(t, records, len(kinds))
	for _, record := range records {
		require.Equal(t, record.Kind != recording.Held, record.Faults == "b is cut off", record.Kind)
	}
}

// A recording has what a replay needs of changes of voters: who voted at the start, by the record
// if there is one, and each change that this node was asked for.
func TestVotersThatChangeAreRecorded(t *testing.T) {
	r, dir := inDir(t, nil)
	config := elector.Config{Self: "a", Voters: []elector.NodeID{"a", "b"}, Timing: elector.Article()}
	voters := elector.NewRoster(elector.Voter{Node: "c"}, elector.Voter{Node: "a"})
	for _, in := range []elector.Input{
		elector.Start{}, elector.Start{Record: elector.Record{Voters: voters}}, elector.ChangeVoters{},
		elector.ChangeVoters{Add: elector.Voter{Node: "d"}}, elector.ChangeVoters{Remove: "c"},
	} {
		r.Step("g", false, &config, in)
	}
	quit := make(chan struct{})
	close(quit)
	r.Run(quit)
	records, _, err := recording.Read(dir, recording.Recording)
	require.NoError(t, err)
	require.Len(t, records, 4)
	require.Equal(t, []string{"a", "b"}, records[0].Setup.Voters)
	require.Equal(t, []string{"a", "c"}, records[1].Setup.Voters)
	require.Equal(t, "add-voter d", string(records[2].Kind)+" "+records[2].To)
	require.Equal(t, "remove-voter c", string(records[3].Kind)+" "+records[3].To)
}

// Elections that are opened by the thousand leave room for what was recorded before.
func TestOfManyInputsFewAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := inDir(t, nil)
		age := time.Duration(0)
		r.cfg.Age = func() time.Duration { age++; return age } // equal records are one
		config := elector.Config{Self: "a", Voters: []elector.NodeID{"a", "b"}, Timing: elector.Article()}
		for range 10 {
			for range 1000 {
				r.Step("tenant", false, &config, elector.Start{})
			}
			r.Step("first", true, &config, elector.Eligible{})
			time.Sleep(time.Second)
		}
		quit := make(chan struct{})
		close(quit)
		r.Run(quit)
		records, _, err := recording.Read(dir, recording.Recording)
		require.NoError(t, err)
		of := map[string]int{}
		for _, record := range records {
			of[record.Group]++
		}
		require.Equal(t, map[string]int{"first": 10, "tenant": 10 * mostInputs}, of)
		require.EqualValues(t, 10*(1000-mostInputs), r.Lost())
	})
}
