package elector_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/bmqelect/bmqelect/elector"
)

// TestMain also checks, after all tests, that the parts of roles that all machines share are zero.
func TestMain(m *testing.M) {
	code := m.Run()
	if !elector.NobodyIsUntouched() {
		fmt.Println("a machine wrote into the part of a role that it is not in")
		code = 1
	}
	os.Exit(code)
}
