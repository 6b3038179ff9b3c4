package remote

import (
	"fmt"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// qualities tell what becomes of the quality of service that is asked: a line for what that is,
// and one for each node.
func qualities(statuses []*cluster.Status) (lines []string) {
	for _, st := range statuses {
		g := st.Groups[0]
		q := g.QoS
		if q == nil {
			continue
		}
		if len(lines) == 0 {
			lines = append(lines, fmt.Sprintf("qos: %s", q.Asked))
		}
		short := func(s cluster.Seconds) string { return milliseconds(s.Duration()) + " ms" }
		switch {
		case g.Leading:
			lines = append(lines, fmt.Sprintf("%s: leads, with a heartbeat every %s (%s needed)", st.Node,
				short(q.Period), short(q.Wanted)))
		case q.Detect > 0:
			promise := console.Alert("not met:") + " " + strings.TrimPrefix(q.Unmet, "qos: ")
			if q.Met {
				promise = fmt.Sprintf("met: a mistake every %s, accuracy %.9g", span(q.Mistakes.Duration()),
					q.Accuracy)
			}
			lines = append(lines, fmt.Sprintf("%s: link from %s: loss %.2g %%, delay %s, deviation %s; "+
				"heartbeats every %s (%s needed); crash detected within %s; %s",
				st.Node, g.Leader, 100*q.Loss, short(q.Delay), short(q.Deviation), short(q.Period),
				short(q.Wanted), short(q.Detect), promise))
		}
	}
	return lines
}

// span writes a time of any length in its greatest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 365*day:
		return fmt.Sprintf("%.3g years", float64(d)/float64(365*day))
	case d >= day:
		return fmt.Sprintf("%.3g days", float64(d)/float64(day))
	}
	return d.Round(time.Second).String()
}
