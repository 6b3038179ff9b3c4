package elector_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/bmqelect/bmqelect/elector"
)

// TestMain also checks, after all tests, that the parts of states that all machines share are zero.
// Where they cannot be written (see nobody_unix_test.go), who does so has ended the test before.
func TestMain(m *testing.M) {
	code := m.Run()
	if !elector.NobodyIsUntouched() {
		fmt.Println("a machine wrote into a part of its state that is not its own")
		code = 1
	}
	os.Exit(code)
}
