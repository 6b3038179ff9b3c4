package clustertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an application says last counts, in whatever order its goroutines run: if all
// faults end right after the last step, and if its process is paused meanwhile.
func TestWhatIsSaidLastHolds(t *testing.T) {
	for seed := range uint64(9) {
		s := draw(seed, 1)
		s.voters = s.voters[:3]
		s.steps = []step{
			{time.Second, "unfit", "rest", "", time.Second},
			{time.Second / 2, "unfit", "leader", "", time.Second},
		}
		if v, log := play(t, s); v != nil {
			t.Errorf("seed %d: %s: %s\n%q", seed, v.rule, v.text, log)
		}
		inWorld(t, s, func(t *testing.T, w *world) {
			defer w.stop()
			w.run(bootTime)
			for _, m := range w.members {
				m.pause(2 * time.Second)
				m.unfit(time.Second)
			}
			w.run(3 * time.Second)
			for _, m := range w.members {
				st, ok := m.status()
				require.True(t, ok)
				require.Empty(t, st.Groups[0].Unfit)
			}
		})
	}
}

// A handover to a node whose ack takes long may end after all faults have ended. The leader stays
// if the reason for the handover is gone.
func TestAHandoverMayOutlastTheFaults(t *testing.T) {
	for _, op := range []string{"transfer", "unfit"} {
		s := draw(482, 1) // the seed of the slow ack
		s.voters = s.voters[:3]
		s.steps = []step{{700 * time.Millisecond, op, "leader", "", time.Second}}
		if v, log := play(t, s); v != nil {
			t.Errorf("%s: %s: %s\n%q", op, v.rule, v.text, log)
		}
	}
}

// A leader whose disk hangs behind a partition stops leading when its lease ends, and another
// leads. In etcd (issue 13527) such a leader went on, because its clock stopped with the disk.
func TestAStalledDiskBehindAPartitionKeepsNoLeader(t *testing.T) {
	for seed := range uint64(10) {
		s := draw(seed, 1)
		inWorld(t, s, func(t *testing.T, w *world) {
			defer w.stop()
			w.run(bootTime)
			old := w.leader()
			require.NotNil(t, old)
			const long = time.Minute
			onDisk(hanging)(old, long)
			for _, m := range w.members {
				if m != old {
					drop(w, old, m, long)
					drop(w, m, old, long)
				}
			}
			w.run(s.timing.Lease)
			require.False(t, old.process.leads())
			w.run(w.bound())
			require.NotNil(t, w.leader())
			require.NotEqual(t, old, w.leader())
			w.endFaults()
			w.settle()
			v, log := w.judge.result()
			require.Nil(t, v, "%q", log)
		})
	}
}
