package detector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A wire carries heartbeats over a link, in virtual time. Each is lost with a probability. Delays
// are exponential, or mostly zero with a stall now and then.
type wire struct {
	loss    float64
	mean    time.Duration
	stalls  float64       // how probable a stall is; 0 for exponential delays
	resend  time.Duration // by which a lost one comes later, as over TCP; 0 if it never comes
	ordered bool
	rng     *rand.Rand

	last    time.Duration // arrival
	pending []delivery    // by arrival
}

type delivery struct {
	at time.Duration
	hb Heartbeat
}

func newWire(seed uint64, q Quality) *wire {
	return &wire{loss: q.Loss, mean: q.Delay, ordered: q.Ordered, rng: rand.New(rand.NewPCG(seed, 7))}
}

func (w *wire) send(hb Heartbeat) {
	lost := w.rng.Float64() < w.loss
	at := hb.Scheduled
	if w.stalls == 0 {
		at += time.Duration(w.rng.ExpFloat64() * float64(w.mean))
	} else if w.rng.Float64() < w.stalls {
		at += time.Duration(float64(w.mean) / w.stalls)
	}
	if lost && w.resend == 0 {
		return
	}
	if lost {
		at += w.resend
	}
	if w.ordered {
		at = max(at, w.last)
	}
	w.last = max(w.last, at)
	i := len(w.pending)
	w.pending = append(w.pending, delivery{})
	for ; i > 0 && w.pending[i-1].at > at; i-- {
		w.pending[i] = w.pending[i-1]
	}
	w.pending[i] = delivery{at, hb}
}

// deliveries yields what arrives, in that order, from a sender that sends every period and
// crashes at the given time.
func (w *wire) deliveries(period, crash time.Duration) func(yield func(delivery) bool) {
	return func(yield func(delivery) bool) {
		next := Heartbeat{Number: 1, Period: period}
		for next.Scheduled < crash || len(w.pending) > 0 {
			if next.Scheduled < crash && (len(w.pending) == 0 || next.Scheduled < w.pending[0].at) {
				w.send(next)
				next.Number++
				next.Scheduled += period
				continue
			}
			first := w.pending[0]
			w.pending = w.pending[:copy(w.pending, w.pending[1:])]
			if !yield(first) {
				return
			}
		}
	}
}

// measured is the quality that a Link estimates after n heartbeats on a wire of known mean delay.
func measured(t *testing.T, w *wire, period time.Duration, n int) Quality {
	link := Link{Ordered: w.ordered}
	for arrived := range w.deliveries(period, time.Duration(n)*period) {
		link.Observe(arrived.at, arrived.hb)
	}
	link.RoundTrip(2 * w.mean)
	q, isKnown := link.Quality()
	require.True(t, isKnown)
	return q
}

// A record is what was measured of a detector, by the rules of [CTA]: a mistake is a change
// to suspicion while the sender was up.
type record struct {
	up       time.Duration
	mistakes int
	wrong    time.Duration   // suspected while up
	detected []time.Duration // T_D of each crash
}

func (r *record) recurrence() float64 { return r.up.Seconds() / float64(r.mistakes) }
func (r *record) duration() float64   { return r.wrong.Seconds() / float64(r.mistakes) }
func (r *record) accuracy() float64   { return 1 - r.wrong.Seconds()/r.up.Seconds() }

func (r *record) slowest() time.Duration { return slices.Max(r.detected) }

// watch lets a detector watch one life of a sender.
func (r *record) watch(d Detector, w *wire, period, crash time.Duration) {
	watched := watcher{Detector: d, record: r, crash: crash, trusts: true}
	for arrived := range w.deliveries(period, crash) {
		watched.take(arrived)
	}
	watched.end()
}

// A watcher measures a detector over one life of a sender, and adds to its record.
type watcher struct {
	Detector
	*record
	crash, deadline, since time.Duration // suspected since
	trusts, heard          bool
}

func (w *watcher) take(arrived delivery) {
	if w.heard && w.trusts && w.deadline <= arrived.at {
		w.trusts, w.since = false, w.deadline
	}
	w.deadline = w.Observe(arrived.at, arrived.hb)
	switch w.heard = true; {
	case w.deadline > arrived.at && !w.trusts:
		w.suspected(arrived.at)
		w.trusts = true
	case w.deadline <= arrived.at && w.trusts:
		w.trusts, w.since = false, arrived.at
	}
}

func (w *watcher) suspected(until time.Duration) {
	if w.since < w.crash {
		w.mistakes++
		w.wrong += min(until, w.crash) - w.since
	}
}

func (w *watcher) end() {
	if w.trusts {
		w.since = w.deadline
	}
	w.suspected(w.crash)
	w.up += w.crash
	w.detected = append(w.detected, max(w.since-w.crash, 0))
}

// naiveNFDE is NFD-E as [CTA] writes it: numbers x eta, and all of the last n arrivals.
type naiveNFDE struct {
	n       int
	alpha   time.Duration
	late    []time.Duration
	sum     time.Duration // of late
	highest uint64
	tau     time.Duration
}

func (d *naiveNFDE) Observe(now time.Duration, hb Heartbeat) time.Duration {
	if len(d.late) == d.n {
		d.sum -= d.late[0]
		d.late = d.late[1:]
	}
	d.late = append(d.late, now-time.Duration(hb.Number)*hb.Period)
	d.sum += d.late[len(d.late)-1]
	if hb.Number > d.highest {
		d.highest = hb.Number
		expected := d.sum/time.Duration(len(d.late)) + time.Duration(hb.Number+1)*hb.Period
		d.tau = expected + d.alpha
	}
	return d.tau
}

// duration converts the figures of papers, which are in seconds.
func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * 1e9))
}

// NFDE does what the paper's formula says, with a window of 128 that fits in ten seconds.
func TestNFDEIsThePapers(t *testing.T) {
	const eta = 50 * time.Millisecond
	naive := &naiveNFDE{n: windowSize, alpha: 100 * time.Millisecond}
	d := NewNFDE(eta + naive.alpha)
	w := newWire(2, Quality{Loss: 0.1, Delay: 40 * time.Millisecond})
	overtaken, highest := 0, uint64(0)
	for arrived := range w.deliveries(eta, 10_000*eta) {
		if arrived.hb.Number < highest {
			overtaken++
		}
		highest = max(highest, arrived.hb.Number)
		want := naive.Observe(arrived.at, arrived.hb)
		require.InDelta(t, want, d.Observe(arrived.at, arrived.hb), 2, "rounding of the mean")
	}
	require.Greater(t, overtaken, 100)
}

// NFDE has the quality that theory predicts, on each link whose exact quality is known. The rows
// are scaled to a period of 10 ms, so that the window is full.
func TestNFDEHasTheExactQuality(t *testing.T) {
	for i, row := range exactRows {
		scale := 0.01 / row.eta
		mean, margin := duration(scale*row.mean), duration(scale*(row.delta-row.mean))
		var r record
		r.watch(NewNFDE(10*ms+margin), newWire(uint64(i), Quality{Loss: row.loss, Delay: mean}), 10*ms,
			duration(scale*400*row.recurrence))
		require.InEpsilon(t, row.recurrence, r.recurrence()/scale, 0.2, "%+v: %+v", row, r)
		require.InEpsilon(t, row.duration, r.duration()/scale, 0.2, "%+v: %+v", row, r)
		require.InEpsilon(t, 1-row.accuracy, 1-r.accuracy(), 0.25, "%+v: %+v", row, r)
	}
}
