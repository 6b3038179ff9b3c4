// Package openapi_test compares what a node's HTTP side answers with its description.
package openapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
)

const folder = "../../internal/daemon/admin"

// TestEveryAnswerIsDescribed runs the tests of the HTTP side, which record what they see.
func TestEveryAnswerIsDescribed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "exchanges")
	cmd := exec.Command("go", "test", "-count=1", "./internal/daemon/admin")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "ADMIN_EXCHANGES="+name)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	lines, count := bufio.NewScanner(file), 0
	lines.Buffer(nil, 16<<20)
	for ; lines.Scan(); count++ {
		var e struct {
			Method, URL string
			Status      int
			Header      http.Header
			Body        []byte
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		req, err := http.NewRequestWithContext(t.Context(), e.Method, e.URL, bytes.NewReader(nil))
		require.NoError(t, err)
		conforms(t, req, &http.Response{StatusCode: e.Status, Header: e.Header}, e.Body)
	}
	require.NoError(t, lines.Err())
	require.Greater(t, count, 50)
}

// contract is openapi.yaml, made strict: what it does not name must not be there.
// Users get the lenient form, so that a node may say more to them one day.
var contract = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(folder + "/openapi.yaml")
	if err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
	for _, schema := range doc.Components.Schemas {
		if len(schema.Value.Properties) > 0 {
			no := false
			schema.Value.AdditionalProperties.Has = &no
		}
	}
	return doc, doc.Validate(context.Background())
})

// conforms checks that an answer is one of those that openapi.yaml has for the
// request. A request that is not for one of its routes gets a problem.
func conforms(t *testing.T, req *http.Request, resp *http.Response, body []byte) {
	doc, err := contract()
	require.NoError(t, err)
	path, params := pathOf(doc, req.URL.EscapedPath())
	item, method := doc.Paths.Value(path), strings.Replace(req.Method, "HEAD", "GET", 1)
	if item == nil || item.GetOperation(method) == nil {
		require.GreaterOrEqual(t, resp.StatusCode, 400)
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req, PathParams: params,
			Route: &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method,
				Operation: item.GetOperation(method)},
		},
		Status: resp.StatusCode, Header: resp.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes(body)
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), input), "%s %s: %s", req.Method,
		req.URL, body)
}

// pathOf finds the path of the document that a request is for.
func pathOf(doc *openapi3.T, path string) (string, map[string]string) {
	for _, pattern := range doc.Paths.InMatchingOrder() {
		if params, ok := match(strings.Split(pattern, "/"), strings.Split(path, "/")); ok {
			return pattern, params
		}
	}
	return "", nil
}

func match(pattern, path []string) (map[string]string, bool) {
	params := map[string]string{}
	return params, slices.EqualFunc(pattern, path, func(want, got string) bool {
		if name, ok := strings.CutPrefix(want, "{"); ok {
			params[strings.TrimSuffix(name, "}")] = got
			return true
		}
		return want == got
	})
}

// TestDocumentNamesEveryField looks at the types, because a field that is absent
// when it is empty may be missing from every answer of a test.
func TestDocumentNamesEveryField(t *testing.T) {
	doc, err := contract()
	require.NoError(t, err)
	for name, v := range map[string]any{
		"Status": cluster.Status{}, "Election": cluster.GroupStatus{}, "Member": cluster.MemberStatus{},
		"Leader": admin.Leader{}, "NotLeader": admin.NotLeader{}, "Problem": admin.Problem{},
		"Event": admin.Event{}, "Reset": admin.Reset{}, "TransferRequest": admin.TransferRequest{},
		"StepDownRequest": admin.StepDownRequest{},
		"OpenRequest":     admin.OpenRequest{},
		"PreparedRequest": admin.PreparedRequest{},
		"SuccessionEvent": admin.SuccessionEvent{},
		"ForgetRequest":   admin.ForgetRequest{},
		"RecordStatus":    cluster.RecordStatus{}, "Voter": cluster.Voter{},
		"ElectionRecord": admin.Record{}, "Published": admin.Published{},
		"Probe": health.Status{}, "ProbeEvent": admin.ProbeEvent{},
		"VoterStep": cluster.VoterStep{}, "VotersRequest": admin.VotersRequest{},
		"PauseRequest": admin.PauseRequest{}, "SettingsRequest": admin.SettingsRequest{},
		"Emergency": cluster.EmergencyStatus{}, "Readmission": cluster.ReadmissionStatus{},
		"Finding":      findings.Finding{},
		"FaultRequest": admin.FaultRequest{}, "LinkFault": admin.LinkFault{},
		"FaultStatus": admin.FaultStatus{},
		"Answer":      ask.Answer{}, "Report": ask.Report{}, "Check": ask.Check{},
	} {
		documented := slices.Sorted(maps.Keys(doc.Components.Schemas[name].Value.Properties))
		require.ElementsMatch(t, fieldsOf(reflect.TypeOf(v)), documented,
			"fields of %T, and the schema %s in openapi.yaml", v, name)
	}
}

// fieldsOf lists the names that a struct's fields have in JSON.
func fieldsOf(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			names = append(names, fieldsOf(f.Type)...)
			continue
		}
		if f.IsExported() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}
