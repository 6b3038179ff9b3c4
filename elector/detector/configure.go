package detector

import (
	"fmt"
	"math"
	"time"
)

// Limits are the periods that a sender can keep.
type Limits struct {
	// Shortest is eta_min: the sender's CPU, timers and the link's stalls bound it. If heartbeats
	// are closer together than a stall lasts, one stall delays several, and Configure would take
	// them for independent. At least 1us.
	Shortest time.Duration
	// Longest is the longest period that is of use. At least Shortest.
	Longest time.Duration
	// Detection is the least T_D^u that is of use: a suspicion before the end of the leader's
	// lease elects nobody. 0 or more.
	Detection time.Duration
}

// Plan is how often to send and how long to wait, with what follows for a link of the
// quality that it was made for.
type Plan struct {
	Period time.Duration // eta
	Margin time.Duration // alpha of NFDE: from the expected arrival to the freshness point
	// Recurrence is a lower bound of E(T_MR), at most 292 years, the longest Duration.
	Recurrence time.Duration
	// Accuracy is a lower bound of P_A.
	Accuracy float64
	// Duration is an upper bound of E(T_M); 0 for an ordered link, for which there is none.
	Duration time.Duration
}

// Detection is T_D^u = eta + alpha, for NewNFDE: a crash is detected within Detection + E(D).
func (p Plan) Detection() time.Duration { return p.Period + p.Margin }

// Infeasible says that no period within the limits provides what was asked.
type Infeasible struct {
	// Violated is the bound that cannot be met: "detect", "mistakes", or "accuracy" (also for
	// duration).
	Violated string
	// Best is the best plan with the same Detect. It is zero if Detect without the mean delay is
	// below the limits.
	Best Plan
	// Detect is the least T_D^U for which the rest can be had; 0 if there is none.
	Detect time.Duration
	// Period is the eta that would be needed; 0 if none of 100us or more would do.
	Period time.Duration
}

// Error says what is possible instead, in figures of three digits, rounded to the safe side.
func (e *Infeasible) Error() string {
	text := fmt.Sprintf("qos: %s cannot be met on this link", e.Violated)
	if best := e.Best; best.Period > 0 {
		text += fmt.Sprintf("; with the same detect: a mistake every %s, accuracy %.7g, period %s",
			best.Recurrence.Truncate(digit(best.Recurrence)), best.Accuracy, best.Period)
	}
	if e.Detect > 0 {
		up := digit(e.Detect)
		text += fmt.Sprintf("; with the same mistakes and accuracy: detect %s",
			(e.Detect + up - 1).Truncate(up))
	}
	if e.Period > 0 {
		text += fmt.Sprintf("; or with a period of %s", e.Period.Truncate(digit(e.Period)))
	}
	return text
}

// digit is the place value of the third digit of d.
func digit(d time.Duration) time.Duration {
	place := time.Duration(1)
	for d/place >= 1000 {
		place *= 10
	}
	return place
}

// Configure computes the cheapest plan, the one with the longest period, that provides what is
// asked on a link of which only p_L, E(D) and V(D) are known: the configurator of [CTA] for NFD-U
// and NFD-E. It uses only the moments of the delay, so the plan holds for any distribution of the
// delay, if delays and losses are independent or the link is Ordered.
//
// The error is an *Infeasible if no plan within the limits does; the plan is then the best within
// them, Infeasible.Best. Any other error says which argument is wrong.
func Configure(ask QoS, link Quality, limits Limits) (Plan, error) {
	if err := ask.Validate(); err != nil {
		return Plan{}, fmt.Errorf("qos: %w", err)
	}
	switch {
	case !(link.Loss > 0 && link.Loss <= mostLoss) || link.Deviation <= 0 || link.Delay < 0:
		return Plan{}, fmt.Errorf("qos: loss %v, deviation %s, delay %s: the loss must be above 0 "+
			"and at most %v, the deviation positive, the delay 0s or more",
			link.Loss, link.Deviation, link.Delay, mostLoss)
	case limits.Shortest < time.Microsecond || limits.Longest < limits.Shortest:
		return Plan{}, fmt.Errorf("qos: the shortest period is %s and the longest %s, but must be "+
			"at least 1us, and no shorter than the shortest", limits.Shortest, limits.Longest)
	}
	p := newProblem(ask, link, limits)
	if eta, ok := p.solve(); ok {
		return p.plan(p.round(eta)), nil
	}
	e := p.infeasible(link.Delay)
	return e.Best, e
}

// problem is the input of the configurator, in seconds.
type problem struct {
	t                    float64 // T_D^u = T_D^U - E(D)
	v, loss              float64 // V(D), p_L
	ordered              bool
	recurrence, duration float64 // T_MR^L, T_M^U
	shortest, longest    float64 // eta
	least                float64 // T_D^u
}

func newProblem(ask QoS, link Quality, limits Limits) problem {
	return problem{
		t: (ask.Detect - link.Delay).Seconds(), v: square(link.Deviation.Seconds()),
		loss: link.Loss, ordered: link.Ordered,
		recurrence: time.Duration(ask.Mistakes).Seconds(), duration: ask.duration(),
		shortest: limits.Shortest.Seconds(), longest: limits.Longest.Seconds(),
		least: limits.Detection.Seconds(),
	}
}

// solve returns the longest period that keeps the promise, to a millionth. The bound is not
// monotone in eta: where T is just above a multiple of eta, the last heartbeat that counts is
// worth nothing, and a slightly longer eta does without it. So solve descends in steps of 1 %, and
// bisects only within a step.
func (p problem) solve() (eta float64, ok bool) {
	eta = min(p.t, p.longest)
	above := eta
	for !p.keeps(eta) {
		if eta <= p.shortest {
			return 0, false
		}
		above, eta = eta, max(eta*0.99, p.shortest)
	}
	for above-eta > 1e-6*eta {
		if mid := (above + eta) / 2; p.keeps(mid) {
			eta = mid
		} else {
			above = mid
		}
	}
	return eta, true
}

// keeps reports whether the period gives what was asked.
func (p problem) keeps(eta float64) bool {
	if !(eta >= p.shortest && eta <= p.t && eta <= p.longest && p.t >= p.least) {
		return false
	}
	need := p.recurrence
	switch {
	case p.ordered: // P_A >= 1 - eta/E(T_MR), and P_A^L = 1 - T_M^U/T_MR^L
		need = max(need, eta*p.recurrence/p.duration)
	case eta > p.gamma()*p.duration: // E(T_M) <= eta/gamma
		return false
	}
	return p.f(eta, need) >= need
}

// gamma is the paper's gamma' = (1 - p_L) T^2/(V(D) + T^2): at least this share of the mistakes
// ends with the next heartbeat.
func (p problem) gamma() float64 { return (1 - p.loss) * p.t * p.t / (p.v + p.t*p.t) }

// f is a lower bound of E(T_MR), in seconds. It goes on until it has shown enough.
//
// If heartbeats are independent, f is the paper's f(eta): for a mistake, each of the
// ceil(T/eta) - 1 heartbeats that can still come in time must be lost or late, and each is late
// with at most the probability of Cantelli's inequality. Every factor is at least 1, so a product
// that passes the greatest float64 is +Inf, which is enough.
//
// On an ordered link one factor says all, whatever depends on what: at freshness point i the
// sender is suspected if heartbeat i and all after it come later than alpha after i is expected.
// The square of that lateness has the mean V, so by Markov's inequality the probability is at
// most V/alpha^2. Cantelli's inequality does not apply: it is about the mean of what was measured,
// and heartbeats that arrive with the next one are later than that on average.
func (p problem) f(eta, enough float64) float64 {
	if p.ordered {
		return eta * square(p.t-eta) / p.v
	}
	const most = 10_000 // to count fewer promises less, never more
	chances := min(math.Ceil(p.t/eta)-1, most)
	product := eta
	for j := 1.0; j <= chances && product < enough; j++ {
		x2 := square(p.t - j*eta)
		product *= (p.v + x2) / (p.v + p.loss*x2)
	}
	return product
}

// round rounds a period that solve found down to whole microseconds, if that does as well.
func (p problem) round(eta float64) float64 {
	if whole := math.Floor(eta*1e6) / 1e6; p.keeps(whole) {
		return whole
	}
	return eta
}

// plan is what the period gives.
func (p problem) plan(eta float64) Plan {
	recurrence := p.f(eta, math.Inf(1))
	plan := Plan{
		Period: seconds(eta), Margin: seconds(p.t) - seconds(eta),
		Recurrence: seconds(recurrence), Accuracy: max(1-eta/recurrence, 0),
	}
	if !p.ordered {
		plan.Duration = seconds(eta / p.gamma())
	}
	return plan
}

// infeasible says why solve failed, and what is possible instead.
func (p problem) infeasible(delay time.Duration) *Infeasible {
	e := &Infeasible{Violated: "detect"}
	if p.t >= max(p.shortest, p.least) {
		eta := p.safest()
		e.Best = p.plan(eta)
		e.Violated = "mistakes"
		if p.f(eta, p.recurrence) >= p.recurrence {
			e.Violated = "accuracy"
		}
		finer := p
		finer.shortest = 1e-4 // no sender keeps a shorter period, so none is suggested
		if eta, ok := finer.solve(); ok {
			e.Period = seconds(eta)
		}
	}
	if t, ok := p.leastDetection(); ok {
		e.Detect = seconds(t) + delay
	}
	return e
}

// safest returns the period within the limits whose output is right most often: the one with the
// least beta = eta/E(T_MR). On an ordered link it is the one with the longest E(T_MR), about three
// in T_D^u: more heartbeats would hardly ever help.
func (p problem) safest() (best float64) {
	least := math.Inf(1)
	for eta := min(p.t, p.longest); ; eta = max(eta*0.99, p.shortest) {
		beta := eta / p.f(eta, math.Inf(1))
		if p.ordered {
			beta /= eta
		}
		if beta <= least {
			best, least = eta, beta
		}
		if eta == p.shortest {
			return best
		}
	}
}

// leastDetection returns the least T_D^u that permits the rest. It doubles a bound until that
// suffices, and then bisects. On an ordered link the shortest period need not be the best.
func (p problem) leastDetection() (t float64, ok bool) {
	suffices := func(t float64) bool {
		p.t = t
		if !p.ordered {
			return p.keeps(p.shortest)
		}
		_, ok := p.solve()
		return ok
	}
	low, high := max(p.t, 0), max(p.t, p.shortest, p.least)
	for ; !suffices(high); low, high = high, 2*high {
		if high > time.Hour.Seconds() {
			return 0, false
		}
	}
	for high-low > 1e-6*high {
		if mid := (low + high) / 2; suffices(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}

func square(x float64) float64 { return x * x }

// seconds returns x seconds; the longest duration if x is longer.
func seconds(x float64) time.Duration {
	if ns := x * 1e9; ns < math.MaxInt64 {
		return time.Duration(math.Round(ns))
	}
	return math.MaxInt64
}
