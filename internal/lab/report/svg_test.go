package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

func svg(t *testing.T, runs ...verdict.Run) []byte {
	t.Helper()
	return written(t, func(b *bytes.Buffer) error { return report.SVG(b, runs) })
}

func TestSVGGolden(t *testing.T) {
	golden(t, "single.svg", svg(t, takeover()))
	golden(t, "compare.svg", svg(t, takeover(), steady()))
	golden(t, "hostile.svg", svg(t, hostile()))
	golden(t, "nothing.svg", svg(t))
	golden(t, "split.svg", svg(t, split()))
}

// elements counts the elements of a document that is well formed.
func elements(t *testing.T, doc []byte) map[string]int {
	t.Helper()
	found := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(doc)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			found[e.Name.Local]++
		}
	}
}

func TestNamesAddNoElementsToThePicture(t *testing.T) {
	// Marks that are longer find less room for their labels.
	bare, hurt := elements(t, svg(t, takeover())), elements(t, svg(t, hostile()))
	require.Zero(t, hurt["script"])
	require.Zero(t, hurt["img"])
	require.Equal(t, bare["rect"], hurt["rect"])
	require.Equal(t, bare["title"], hurt["title"])
}

func TestThePictureIsBounded(t *testing.T) {
	small, large := svg(t, pingPong(20_000)), svg(t, pingPong(40_000))
	require.Less(t, len(large), len(small)+len(small)/4)
}
