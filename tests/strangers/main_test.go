// Package strangers lets those who are no members do what they can to real processes.
package strangers

import (
	"testing"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

func TestMain(m *testing.M) { nodes.Main(m) }
