package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bmqelect/bmqelect/cluster"
)

// family is one metric, with all values of its labels.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// families are all that were made.
var families []family

func newFamily(kind prometheus.ValueType, name, help string, labels []string) family {
	f := family{prometheus.NewDesc("bmqelect_"+name, help, labels, nil), kind}
	families = append(families, f)
	return f
}

func gauge(name, help string, labels ...string) family {
	return newFamily(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) family {
	return newFamily(prometheus.CounterValue, name, help, labels)
}

// histogram is a family with classic buckets, which every Prometheus accepts. There are
// few of them: no histogram has a label for a peer or an election.
func histogram(name, help string, labels ...string) family {
	return newFamily(prometheus.UntypedValue, name, help, labels)
}

// number is what a metric's value is made of.
type number interface {
	~int | ~uint8 | ~uint64 | ~float64
}

// send puts out one value.
func send[T number](out chan<- prometheus.Metric, f family, value T, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(value), labels...)
}

// sendTruth puts out 1 or 0.
func sendTruth(out chan<- prometheus.Metric, f family, yes bool, labels ...string) {
	send(out, f, boolToInt(yes), labels...)
}

func boolToInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// sendSpread puts out a histogram.
func sendSpread(out chan<- prometheus.Metric, f family, h cluster.Histogram, labels ...string) {
	count, buckets := uint64(0), map[float64]uint64{}
	for i, c := range h.Counts {
		count += c
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = count
		}
	}
	out <- prometheus.MustNewConstHistogram(f.desc, count, h.Sum, buckets, labels...)
}
