package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/foreign"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Messages of other algorithms must not wake the driver of a node that runs none.
func TestOnlyADemonstrationTakesForeignMessages(t *testing.T) {
	for want, algorithm := range map[bool]foreign.Algorithm{
		false: {},
		true:  {Name: "x", New: func(foreign.Setup) (foreign.Machine, error) { return nil, nil }},
	} {
		n := &Node{foreign: algorithm}
		_, takes := n.meshHandler().(netmesh.ForeignHandler)
		require.Equal(t, want, takes)
	}
}
