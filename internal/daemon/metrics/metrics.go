// Package metrics exports the counts of a node to Prometheus. It keeps no counts of its own: each
// scrape reads the node's Stats and Status once.
//
// The number of series is bounded, whatever the number of elections and members, and however often
// these change: see maxElections and maxPeers. Sums include all elections. docs/metrics.md
// describes every metric.
package metrics

import (
	"net/http"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Source is a node, such as *cluster.Node. Both methods must be safe for concurrent use.
type Source interface {
	StatusOf(cluster.Selection) cluster.Status
	StatsOf(cluster.Selection) cluster.Stats
}

const (
	// maxScrapes bounds the scrapes at a time. A node whose driver hangs answers none of them, and
	// waiting scrapes must not pile up.
	maxScrapes = 8
	// maxElections bounds the elections with series of their own, at most twenty-seven each. If more
	// are open, only the default one has: a choice of others would change, and leave series behind.
	maxElections = 200
	// maxPeers bounds the members with series of their own, eight each: the voters, and the first of
	// the observers by name.
	maxPeers = 100
)

// Handler answers scrapes of a node, in the text format or in OpenMetrics, as the scraper asks.
// Each handler has its own registry, so that nodes of one process do not mix. log gets errors of
// scrapes; nil logs nothing.
func Handler(source Source, log hclog.Logger) http.Handler {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	r := prometheus.NewRegistry()
	r.MustRegister(
		collector{source},
		collectors.NewBuildInfoCollector(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog:            log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
		MaxRequestsInFlight: maxScrapes,
	})
}

type collector struct{ source Source }

// Describe lists every metric of the package.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
}

type node struct {
	status cluster.Status
	stats  cluster.Stats
	links  []netmesh.LinkStatus // those with series of their own
}

// Collect reads the node once.
func (c collector) Collect(out chan<- prometheus.Metric) {
	n := node{
		status: c.source.StatusOf(cluster.Selection{Group: cluster.DefaultGroup}),
		stats:  c.source.StatsOf(cluster.Selection{Few: maxElections}),
	}
	votes := map[cluster.NodeID]bool{}
	for _, m := range n.status.Members {
		votes[m.Node] = m.Voter
	}
	n.links = firstOf(n.stats.Links, maxPeers, func(l netmesh.LinkStatus) bool {
		return votes[l.Peer.Node]
	})
	for _, m := range metrics {
		m.read(&n, output{m, out})
	}
}

// firstOf returns at most that many, the preferred ones first.
func firstOf[T any](all []T, most int, preferred func(T) bool) []T {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b T) int { return truth(preferred(b)) - truth(preferred(a)) })
	return all[:min(len(all), most)]
}

// metric is a metric with all its labels.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType // of all except histograms
	read func(*node, output)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

func newMetric(
	kind prometheus.ValueType, name, help string, labels []string, read func(*node, output),
) metric {
	return metric{prometheus.NewDesc("bmqelect_"+name, help, labels, nil), kind, read}
}

// output takes the values of a metric.
type output struct {
	metric
	to chan<- prometheus.Metric
}

func (o output) value(v float64, labels ...string) {
	o.to <- prometheus.MustNewConstMetric(o.desc, o.kind, v, labels...)
}

// spread has classic buckets, which every Prometheus accepts. There are few: no histogram has a
// label for peers or elections.
func (o output) spread(h cluster.Histogram, labels ...string) {
	count, buckets := uint64(0), map[float64]uint64{}
	for i, c := range h.Counts {
		count += c
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = count
		}
	}
	o.to <- prometheus.MustNewConstHistogram(o.desc, count, h.Sum, buckets, labels...)
}

// number is the type of a metric's value.
type number interface {
	~int | ~uint8 | ~uint64 | ~float64
}

// single is a metric without labels.
func single[T number](kind prometheus.ValueType, name, help string, read func(*node) T) metric {
	return newMetric(kind, name, help, nil, func(n *node, out output) { out.value(float64(read(n))) })
}

// sum is a metric without labels, of all elections, also those without series of their own.
func sum[T number](
	kind prometheus.ValueType, name, help string, read func(*cluster.Sums) T,
) metric {
	return single(kind, name, help, func(n *node) T { return read(&n.stats.Sums) })
}

// perElection is a metric of each listed election.
func perElection[T number](
	kind prometheus.ValueType, name, help string, read func(cluster.ElectionStats) T,
) metric {
	return newMetric(kind, name, help, []string{"group"}, func(n *node, out output) {
		for _, e := range n.stats.Elections {
			out.value(float64(read(e)), e.Group)
		}
	})
}

// perProbe is a metric of each health probe, of which bmqnode has three.
func perProbe(
	kind prometheus.ValueType, name, help string, read func(health.Status) float64,
) metric {
	return newMetric(kind, name, help, []string{"probe"}, func(n *node, out output) {
		for _, s := range n.status.Probes {
			out.value(read(s), s.Name)
		}
	})
}

// perRecord is a metric of each listed election in which a record was ever written.
func perRecord(name, help string, read func(*cluster.RecordStatus) float64) metric {
	return newMetric(gauge, name, help, []string{"group"}, func(n *node, out output) {
		for _, e := range n.stats.Elections {
			if e.Record != nil {
				out.value(read(e.Record), e.Group)
			}
		}
	})
}

// perQoS is a metric of each listed election that asks for a quality of service.
func perQoS(
	name, help string, labels []string,
	read func(q *cluster.QoSStatus, value func(v float64, labels ...string)),
) metric {
	return newMetric(gauge, name, help, append([]string{"group"}, labels...),
		func(n *node, out output) {
			for _, e := range n.stats.Elections {
				if e.QoS != nil {
					read(e.QoS, func(v float64, labels ...string) {
						out.value(v, append([]string{e.Group}, labels...)...)
					})
				}
			}
		})
}

// perLink is a metric of each listed link; ok is false if there is no value now.
func perLink(
	name, help string, read func(*node, netmesh.LinkStatus) (value float64, ok bool),
) metric {
	return newMetric(gauge, name, help, []string{"peer"}, func(n *node, out output) {
		for _, l := range n.links {
			if value, ok := read(n, l); ok {
				out.value(value, string(l.Peer.Node))
			}
		}
	})
}

// histogram is a metric without labels.
func histogram(name, help string, read func(*node) cluster.Histogram) metric {
	return newMetric(gauge, name, help, nil, func(n *node, out output) { out.spread(read(n)) })
}

func truth(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
