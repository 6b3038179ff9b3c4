// Package metrics exports what a node counts to Prometheus. It keeps no figure of
// its own: each scrape reads the node's Stats and Status once.
//
// The number of series is bounded, however many elections and members there are:
// see maxElections and maxPeers. Sums over all elections leave none out.
// docs/metrics.md describes every metric.
package metrics

import (
	"net/http"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bmqelect/bmqelect/cluster"
)

// Source is a node, such as *cluster.Node. Both methods must
// be safe for concurrent use.
type Source interface {
	Status() cluster.Status
	Stats() cluster.Stats
}

// maxScrapes bounds the scrapes at a time. A node whose driver hangs answers none,
// and those that wait must not pile up.
const maxScrapes = 8

// Handler answers scrapes of a node, in the text format or in OpenMetrics as the
// scraper asks. Each handler has a registry of its own, so that several nodes in
// one process do not mix. log gets what goes wrong with a scrape; nil for nothing.
func Handler(source Source, log hclog.Logger) http.Handler {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	return promhttp.HandlerFor(newRegistry(source), promhttp.HandlerOpts{
		ErrorLog:            log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
		MaxRequestsInFlight: maxScrapes,
	})
}

// newRegistry holds the node's metrics, and those of its process and build.
func newRegistry(source Source) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collector{source},
		collectors.NewBuildInfoCollector(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// collector is a node as Prometheus sees it.
type collector struct{ source Source }

var _ prometheus.Collector = collector{}

// Describe lists every metric of the package.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families {
		out <- f.desc
	}
}

// Collect reads the node once.
func (c collector) Collect(out chan<- prometheus.Metric) {
	status, stats := c.source.Status(), c.source.Stats()
	collectNode(out, &status, &stats)
	collectElections(out, stats.Elections)
	collectSums(out, &stats)
	collectAnswers(out, &stats)
	collectProblems(out, &status, &stats)
	collectDriver(out, &stats)
	collectLinks(out, listedLinks(&status, stats.Links), stats.Clocks)
}
