// Package nodes is for tests of real bmqnode processes. Its tests run in a folder two levels below
// the top of the repository. A Scene's methods may be called from any goroutine, except those that
// end the test: they are for the goroutine that runs it.
package nodes

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// Top is the top of the repository, as tests see it.
const Top = "../.."

// Binary is bmqnode, built from this tree, with the race detector if the tests have it.
var Binary string

// Patience bounds one step that must happen; nothing is concluded from how long it took.
var Patience = testkit.Limit(time.Minute)

// Main builds bmqnode and runs a package's tests: more at once than there are cores, unless
// -parallel says how many, because processes mostly wait.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "10")
	}
	dir, err := os.MkdirTemp("", "bmqnode-e2e-")
	if err != nil {
		panic(err)
	}
	Binary = filepath.Join(dir, "bmqnode")
	if err := Build(Top, Binary); err != nil {
		panic(err)
	}
	// A child in which a race is found ends at once, and no other waits at its end
	// for the detector.
	os.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// Build builds the bmqnode of a tree.
func Build(tree, binary string, flags ...string) error {
	args := append([]string{"build", fmt.Sprintf("-race=%t", Raced), "-o", binary}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/bmqnode")...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
