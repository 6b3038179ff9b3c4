package recorder

import (
	"slices"
	"strconv"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// mostInputs is how many inputs of a second are recorded, except for those of the default election.
// Those of a hundred thousand elections would take the place of all that was recorded before.
const mostInputs = 10

// Step records an input of an election that is not a message: heartbeats are not recorded. The
// first election is the default one.
func (r *Recorder) Step(group string, first bool, c *elector.Config, in elector.Input) {
	switch in.(type) {
	case elector.Start, elector.Transfer, elector.Resign, elector.ChangeVoters, elector.Eligible:
		if !first && !r.inputs.Passes(struct{}{}) {
			r.Skip()
			return
		}
	}
	switch in := in.(type) {
	case elector.Start:
		setup := SetupOf(*c)
		if voters := in.Record.Voters.Voters(); len(voters) > 0 {
			setup.Voters = nil
			for _, v := range voters {
				setup.Voters = append(setup.Voters, string(v.Node))
			}
		}
		r.Record(recording.Record{Kind: recording.Opened, Group: group, Setup: setup})
	case elector.Transfer:
		r.Record(recording.Record{Kind: recording.Transfer, Group: group, To: string(in.To)})
	case elector.Resign:
		r.Record(recording.Record{Kind: recording.StepDown, Group: group, Seconds: in.Rest.Seconds()})
	case elector.ChangeVoters:
		kind, voter := recording.AddVoter, in.Add.Node
		if in.Remove != "" {
			kind, voter = recording.RemoveVoter, in.Remove
		}
		if voter != "" {
			r.Record(recording.Record{Kind: kind, Group: group, To: string(voter)})
		}
	case elector.Eligible:
		kind := recording.Unfit
		if in.Able {
			kind = recording.Fit
		}
		r.Record(recording.Record{Kind: kind, Group: group})
	}
}

// Transition records a transition of an election.
func (r *Recorder) Transition(group string, t *elector.Transition) {
	r.Record(recording.Record{
		Kind: recording.Transition, Group: group, From: t.From.String(), To: t.To.String(),
		Reason: t.Reason.String(), Term: uint64(t.Term), Leader: string(t.Leader),
		Peer: string(t.Peer),
	})
}

// SetupOf returns how a node elects, in the words of a scenario.
func SetupOf(c elector.Config) *recording.Setup {
	t := c.Timing
	s := &recording.Setup{
		NotCandidate: c.NotCandidate, Priority: c.Priority,
		Scouting: !c.UnsafeNoScouting, Rule: c.Rule.String(),
		Elector: map[string]string{
			"initial_wait":    t.InitialWait.String(),
			"min_random_wait": t.MinRandomWait.String(), "max_random_wait": t.MaxRandomWait.String(),
			"scouting_result": t.ScoutingResult.String(), "election_result": t.ElectionResult.String(),
			"heartbeat_broadcast":  t.HeartbeatBroadcast.String(),
			"heartbeat_miss_count": strconv.Itoa(t.HeartbeatMissCount),
			"lease":                t.Lease.String(),
			"clock_drift":          strconv.FormatFloat(float64(t.ClockDriftPPM)/1e6, 'f', -1, 64),
		},
	}
	for _, v := range slices.Sorted(slices.Values(c.Voters)) {
		s.Voters = append(s.Voters, string(v))
	}
	if c.QuorumSize() != elector.Majority(len(c.Voters)) {
		s.Elector["quorum"] = strconv.Itoa(c.Quorum)
	}
	if c.UnsafeQuorum {
		s.Elector["unsafe_quorum"] = "true"
	}
	if c.QoS != (detector.QoS{}) {
		s.Elector["qos"] = "{" + c.QoS.String() + "}"
	}
	if c.Phi != (detector.PhiConfig{}) {
		s.Elector["phi"] = "{" + c.Phi.String() + "}"
	}
	if c.Takeover != 0 {
		s.Elector["takeover"] = c.Takeover.String()
	}
	return s
}
