package main_test

import (
	"testing"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

func TestMain(m *testing.M) { nodes.Main(m) }
