package clustertest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
)

// seedVariable names the environment variable that makes random tests run one
// schedule again.
const seedVariable = "BMQELECT_SEED"

// newSeeds returns the seeds of a random test's runs: n new ones or, if the
// environment names one, that one alone. A test that fails must tell its seed.
func newSeeds(n int) ([]uint64, error) {
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; want the seed that a failed test printed", seedVariable, err)
		}
		return []uint64{seed}, nil
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	return seeds, nil
}
