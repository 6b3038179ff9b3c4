package words

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNearestNameIsMeant(t *testing.T) {
	known := []string{"elector.lease", "mesh-addr", "node", "nodes", "o", "voters"}
	for name, want := range map[string]string{
		"lease": "elector.lease", "x.node": "node", "mesh_addr": "mesh-addr", "mehs-adr": "mesh-addr",
		"nod": "node", "nodess": "nodes", "oters": "voters", "vot": "", "x": "", "": "", "priority": "",
		"noed": "node", "ndeo": "",
	} {
		require.Equal(t, want, Nearest(name, known), name)
	}
}
