package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const million = 1_000_000

// clock is one boot's monotonic clock: it read zero at the boot and runs fast by
// ppm parts per million. Two boots' readings have nothing to do with each other.
type clock struct {
	boot time.Duration // simulated time of the boot
	zero elector.Time
	ppm  int64
}

// at is the clock's reading at a simulated time.
func (c clock) at(now time.Duration) elector.Time {
	elapsed := int64(now - c.boot)
	return c.zero + elector.Time(elapsed+mulDiv(elapsed, c.ppm, million))
}

// When is the first simulated time at which the clock reads local or later; the
// farthest time there is for elector.Never.
func (c clock) When(local elector.Time) time.Duration {
	if local == elector.Never {
		return forever
	}
	t := c.boot + time.Duration(mulDiv(int64(local-c.zero), million, million+c.ppm))
	for c.at(t) < local {
		t++
	}
	for c.at(t-1) >= local {
		t--
	}
	return t
}

// forever is later than every simulated time.
const forever time.Duration = 1<<63 - 1

// longAgo is earlier than every simulated time.
const longAgo = -forever

// mulDiv is x*num/den rounded toward zero, for num up to some millions, without
// the overflow of x*num.
func mulDiv(x, num, den int64) int64 { return x/den*num + x%den*num/den }
