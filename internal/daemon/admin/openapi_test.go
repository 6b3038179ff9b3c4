package admin

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// record appends an exchange to the file that tests/openapi names, which compares all of
// them with openapi.yaml: that needs a library that users of this module must not get.
func record(t *testing.T, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	name := os.Getenv("ADMIN_EXCHANGES")
	if name == "" {
		return
	}
	text, err := json.Marshal(map[string]any{
		"Method": req.Method, "URL": req.URL.String(), "Status": resp.StatusCode,
		"Header": resp.Header, "Body": body,
	})
	require.NoError(t, err)
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.Write(append(text, '\n'))
	require.NoError(t, err)
}

func TestDocumentAndRoutesAreTheSame(t *testing.T) {
	var doc struct{ Paths map[string]map[string]any }
	require.NoError(t, yaml.Unmarshal(openAPI, &doc))
	var documented, served []string
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, r := range (&Server{}).routes() {
		served = append(served, r.method+" "+r.path)
	}
	require.ElementsMatch(t, served, documented)
}

func TestANodeServesItsDocument(t *testing.T) {
	_, c := serve(t, nil)
	c.says(t, http.StatusOK, string(openAPI), "GET", "/v1/openapi.yaml", "")
}
