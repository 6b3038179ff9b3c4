package sim_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps rapid from writing files, since a failure prints its seed, and
// from shrinking for long: a fault that breaks many properties is to show in seconds.
func TestMain(m *testing.M) {
	for _, set := range [][2]string{{"rapid.nofailfile", "true"}, {"rapid.shrinktime", "2s"}} {
		if err := flag.Set(set[0], set[1]); err != nil {
			panic(err)
		}
	}
	flag.Parse() // what the command line says counts
	os.Exit(m.Run())
}
