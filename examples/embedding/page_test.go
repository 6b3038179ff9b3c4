package embedding

import (
	"testing"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestThePageHasTheCodeThatIsTested(t *testing.T) {
	testkit.Page(t, "../../docs/embedding.md", "*.go", "../shards/*.go")
}
