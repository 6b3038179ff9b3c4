package netmesh

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if peer := os.Getenv(childAddr); peer != "" {
		os.Exit(beChild(peer))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(pki.dir)
		os.Exit(code)
	}))
}
