package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
)

// Loss is a topology in which another algorithm is better than ours in something.
type Loss struct {
	Topology string
	Figures  []Beaten
	Why      string // hand-written
}

// Beaten is a figure of ours that is not the best.
type Beaten struct {
	Network, Rival string
	Metric         Metric
	Ours, Best     float64
}

// Losses are all that there are among rows, in their order. It returns an error if one has
// no reason among reasons, or if a reason has no loss.
func Losses(rows []Row) (losses []Loss, err error) {
	for _, topology := range Names(rows, func(r Row) string { return r.Topology }) {
		l := Loss{Topology: topology, Why: reasons[topology]}
		for _, m := range Metrics {
			for _, own := range rows {
				best, lost := own.beaten(rows, m)
				if own.Topology == topology && own.Algorithm == ours.Elector.Name && lost {
					l.Figures = append(l.Figures, Beaten{own.Network, best.Algorithm, m,
						own.Values[m.Name].Mean, best.Values[m.Name].Mean})
				}
			}
		}
		switch lost := len(l.Figures) > 0; {
		case lost && l.Why == "":
			return nil, fmt.Errorf("say among reasons why others are better in %s: %+v", topology, l.Figures)
		case !lost && l.Why != "":
			return nil, fmt.Errorf("take %s from reasons: nobody is better there", topology)
		case lost:
			losses = append(losses, l)
		}
	}
	return losses, nil
}

// beaten returns the best row of the same topology and network if it is better than r by
// more than chance: by more than the intervals, added as those of independent means are.
func (r Row) beaten(rows []Row, m Metric) (best Row, lost bool) {
	if !m.Held {
		return Row{}, false
	}
	worse := func(a, b Estimate) float64 { // how much worse a is than b
		if m.Most {
			return b.Mean - a.Mean
		}
		return a.Mean - b.Mean
	}
	best = r
	for _, other := range rows {
		same := other.Topology == r.Topology && other.Network == r.Network
		if same && worse(best.Values[m.Name], other.Values[m.Name]) > 0 {
			best = other
		}
	}
	own, other := r.Values[m.Name], best.Values[m.Name]
	spread := math.Hypot(own.Mean-own.Low, other.High-other.Mean)
	if m.Most {
		spread = math.Hypot(own.High-own.Mean, other.Mean-other.Low)
	}
	return best, worse(own, other) > spread
}

// Names are those of a column of rows, as they first come.
func Names(rows []Row, of func(Row) string) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, of(r)) {
			names = append(names, of(r))
		}
	}
	return names
}
