package admin

import (
	"encoding/json"
	"net/http"
	"os"
	"path"
	"slices"
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

// TestDocumentAndRoutesAreTheSame also in the parameters of queries.
func TestDocumentAndRoutesAreTheSame(t *testing.T) {
	type parameter struct {
		Ref  string `yaml:"$ref"`
		Name string
		In   string
	}
	type operation struct{ Parameters []parameter }
	var doc struct {
		Paths map[string]struct {
			Get, Put, Post, Delete *operation
			Parameters             []parameter
		}
		Components struct{ Parameters map[string]parameter }
	}
	require.NoError(t, yaml.Unmarshal(openAPI, &doc))
	documented, served := map[string]string{}, map[string]string{}
	for at, item := range doc.Paths {
		for method, op := range map[string]*operation{
			"GET ": item.Get, "PUT ": item.Put, "POST ": item.Post, "DELETE ": item.Delete,
		} {
			if op == nil {
				continue
			}
			var query []string
			for _, p := range slices.Concat(item.Parameters, op.Parameters) {
				if p.Ref != "" {
					p = doc.Components.Parameters[path.Base(p.Ref)]
				}
				if p.In == "query" {
					query = append(query, p.Name)
				}
			}
			slices.Sort(query)
			documented[method+at] = strings.Join(query, " ")
		}
	}
	for _, r := range (&Server{}).routes() {
		query := strings.Fields(strings.Trim(r.query, "*"))
		slices.Sort(query)
		served[r.method+" "+r.path] = strings.Join(query, " ")
	}
	require.Equal(t, documented, served)
}

func TestANodeServesItsDocument(t *testing.T) {
	_, c := serve(t, nil)
	c.says(t, http.StatusOK, string(openAPI), "GET", "/v1/openapi.yaml", "")
}
