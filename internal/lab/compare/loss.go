package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
)

// Loss is a topology in which another algorithm is better than ours in something.
type Loss struct {
	Topology string
	Figures  []Beaten
	Why      string // hand-written
}

// Beaten is a figure of ours that is not the best, or breaks a promise of ours.
type Beaten struct {
	Network, Rival string // Rival is "" if nobody is better
	Own            bool   // with own timers, both
	Metric         Metric
	Ours           Estimate
	Best           float64
}

// Losses returns all losses in rows, in their order. It returns an error if one has
// no reason among reasons, or if a topology's reason has no loss.
func Losses(rows []Row) (losses []Loss, err error) {
	for _, topology := range namesOf(rows, func(r Row) string { return r.Topology }) {
		l := Loss{Topology: topology}
		var why []string
		for _, m := range Metrics {
			lost := len(l.Figures)
			for _, own := range rows {
				best, beaten := own.beaten(rows, m)
				if own.Topology == topology && own.Algorithm == ours.Elector.Name && beaten {
					l.Figures = append(l.Figures, Beaten{own.Network, best.Algorithm, own.Own, m,
						own.Values[m.Name], best.Values[m.Name].Mean})
				}
			}
			reason := cmp.Or(reasons[m.Name], reasons[topology])
			if len(l.Figures) > lost && reason == "" {
				return nil, fmt.Errorf("say among reasons why others are better in %s: %+v", topology,
					l.Figures[lost:])
			}
			if len(l.Figures) > lost && !slices.Contains(why, reason) {
				why = append(why, reason)
			}
		}
		if own := reasons[topology]; own != "" && !slices.Contains(why, own) {
			return nil, fmt.Errorf("take %s from reasons: nobody is better there", topology)
		}
		if l.Why = strings.Join(why, ". "); len(l.Figures) > 0 {
			losses = append(losses, l)
		}
	}
	return losses, nil
}

// beaten returns the best of the rows of the same topology, network and kind of timers that are
// better than r by more than chance: by more than the intervals, added as those of independent
// means are. If ours promises that something never happens, once is a loss, and every row with
// less is better.
func (r Row) beaten(rows []Row, m Metric) (best Row, lost bool) {
	if !m.Held {
		return Row{}, false
	}
	own, most := r.Values[m.Name], 0.
	never := m.Never && own.Mean > 0
	for _, rival := range rows {
		if rival.Topology != r.Topology || rival.Network != r.Network || rival.Own != r.Own {
			continue
		}
		other := rival.Values[m.Name]
		worse := own.Mean - other.Mean
		spread := math.Hypot(own.Mean-own.Low, other.High-other.Mean)
		if m.Most {
			worse = -worse
			spread = math.Hypot(own.High-own.Mean, other.Mean-other.Low)
		}
		if worse > most && (never || worse > spread) {
			best, most = rival, worse
		}
	}
	return best, never || most > 0
}

// namesOf are those of a column of rows, as they first come.
func namesOf[T any](rows []T, of func(T) string) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, of(r)) {
			names = append(names, of(r))
		}
	}
	return names
}
