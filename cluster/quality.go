package cluster

import (
	"fmt"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
)

// QoSStatus says how far ElectionConfig.QoS is met. On the leader it has the period of its
// heartbeats; on a follower also what was measured of the link to the leader, and what follows.
type QoSStatus struct {
	Asked detector.QoS `json:"asked"`
	// Period is that of the leader's heartbeats; 0 if it is unknown or there is no leader.
	Period Seconds `json:"period_s,omitempty"`
	// Wanted is the period that this node needs; on the leader the shortest that a follower needs.
	Wanted Seconds `json:"wanted_s,omitempty"`
	// Estimates of the link from the leader; see detector.Quality.
	Loss      float64 `json:"loss,omitempty"`
	Delay     Seconds `json:"delay_s,omitempty"`
	Deviation Seconds `json:"deviation_s,omitempty"`
	// Promised for that link and that period: the time within which a crash of the leader is
	// detected, the mean time between mistakes, and the share of time without one. Only Detect
	// is known at first.
	Detect   Seconds `json:"promised_detect_s,omitempty"`
	Mistakes Seconds `json:"promised_mistakes_s,omitempty"`
	Accuracy float64 `json:"promised_accuracy,omitempty"`
	// Independent says that beats come as datagrams: the promise rests on the bounds for delays and
	// losses that do not depend on each other. Otherwise it rests on those for an ordered link.
	Independent bool `json:"independent,omitempty"`
	// Met says that the promise is no worse than Asked. Otherwise Unmet says why, and what can
	// be had. Both are empty on a leader, and without one.
	Met   bool   `json:"met"`
	Unmet string `json:"unmet,omitempty"`
}

// detectorName names the failure detector, with figures that no other part of the status has.
func detectorName(c elector.Config) string {
	switch {
	case c.QoS != (detector.QoS{}):
		return "qos"
	case c.Phi != (detector.PhiConfig{}):
		return "phi, " + c.Phi.String()
	}
	return fmt.Sprintf("miss-count, %d heartbeats of %s", c.Timing.HeartbeatMissCount,
		c.Timing.HeartbeatBroadcast)
}

// qosStatus returns nil without ElectionConfig.QoS.
func qosStatus(s *loop.Snapshot) *QoSStatus {
	asked := s.Config.QoS
	if asked == (detector.QoS{}) {
		return nil
	}
	st := &QoSStatus{Asked: asked, Period: seconds(s.Period), Wanted: seconds(s.Wanted)}
	if s.Quality == nil {
		return st
	}
	t, plan, unmet := s.Quality.Tuning, s.Quality.Plan, s.Quality.Unmet
	st.Met = unmet == nil
	if unmet != nil {
		st.Unmet = unmet.Error()
	}
	q := t.Quality
	st.Loss, st.Delay, st.Deviation = q.Loss, seconds(q.Delay), seconds(q.Deviation)
	st.Detect = seconds(t.Detection + q.Delay)
	st.Mistakes, st.Accuracy = seconds(plan.Recurrence), plan.Accuracy
	st.Independent = q != (detector.Quality{}) && !q.Ordered
	return st
}
