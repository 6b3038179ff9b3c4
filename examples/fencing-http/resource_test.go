package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

func at(term lsn.Term, counter uint64) lsn.LSN { return lsn.LSN{Term: term, Counter: counter} }

func openResource(t *testing.T, file string) *Resource {
	t.Helper()
	r, err := OpenResource(file, hclog.NewNullLogger())
	require.NoError(t, err)
	return r
}

func newResource(t *testing.T) *Resource {
	t.Helper()
	return openResource(t, filepath.Join(t.TempDir(), "value.json"))
}

// send sends one request; no token is sent if it is "".
func send(r *Resource, method, token, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/value", strings.NewReader(body))
	if token != "" {
		req.Header.Set(tokenHeader, token)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

// requirePut writes a value with a token, and demands a status.
func requirePut(t *testing.T, r *Resource, token, value string, status int) {
	t.Helper()
	require.Equal(t, status, send(r, http.MethodPut, token, value).Code)
}

func requireValue(t *testing.T, r *Resource, value, token string) {
	t.Helper()
	w := send(r, http.MethodGet, "", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, value, w.Body.String())
	require.Equal(t, token, w.Header().Get(tokenHeader))
}

func TestResourceRefusesAReplacedLeader(t *testing.T) {
	r := newResource(t)
	requirePut(t, r, "5.2", "by the old leader", http.StatusNoContent)
	requirePut(t, r, "6.1", "by the new leader", http.StatusNoContent)

	w := send(r, http.MethodPut, "5.3", "late")
	require.Equal(t, http.StatusPreconditionFailed, w.Code)
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	require.JSONEq(t, `{"title":"Precondition Failed","status":412,
		"detail":"a newer leader has written: got 5.3 after 6.1","token":"5.3","newest":"6.1"}`, w.Body.String())
	requireValue(t, r, "by the new leader", "6.1")

	requirePut(t, r, "6.1", "again", http.StatusNoContent) // the same token may come again
	requireValue(t, r, "again", "6.1")
}

func TestBadRequests(t *testing.T) {
	r := newResource(t)
	for name, c := range map[string]struct {
		method, token, body string
		status              int
		detail              string
	}{
		"no token": {http.MethodPut, "", "x", http.StatusPreconditionRequired,
			`want a header Fencing-Token such as "5.2"`},
		"no LSN": {http.MethodPut, "five", "x", http.StatusBadRequest,
			`Fencing-Token: lsn: "five"`},
		"term 0": {http.MethodPut, "0.1", "x", http.StatusBadRequest, "0.1 is of no leadership"},
		"absurd term": {http.MethodPut, "9223372036854775808.1", "x", http.StatusBadRequest,
			"Fencing-Token: lsn: "},
		"value too long": {http.MethodPut, "9.1", strings.Repeat("x", maxValue+1),
			http.StatusRequestEntityTooLarge, "too large"},
		"other method": {http.MethodDelete, "9.1", "", http.StatusMethodNotAllowed, "want GET or PUT"},
	} {
		w := send(r, c.method, c.token, c.body)
		require.Equal(t, c.status, w.Code, name)
		var p problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), name)
		require.Contains(t, p.Detail, c.detail, name)
		require.Equal(t, c.status, p.Status, name)
	}
	requireValue(t, r, "", "0.0")
	requirePut(t, r, "1.1", "none of them moved the fence", http.StatusNoContent)
}

func TestFenceSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value.json")
	before := openResource(t, file)
	requirePut(t, before, "6.1", "kept\x00\xff", http.StatusNoContent)

	after := openResource(t, file) // and nobody has closed the first: it was killed
	requireValue(t, after, "kept\x00\xff", "6.1")
	requirePut(t, after, "5.9", "late", http.StatusPreconditionFailed)
	requireValue(t, after, "kept\x00\xff", "6.1")
}

func TestHalfASaveChangesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value.json")
	requirePut(t, openResource(t, file), "6.1", "kept", http.StatusNoContent)
	require.NoError(t, os.WriteFile(file+".new", []byte(`{"fence":"7.`), 0o600), "power was lost here")

	after := openResource(t, file)
	requireValue(t, after, "kept", "6.1")
	requirePut(t, after, "7.1", "next", http.StatusNoContent)
	requireValue(t, openResource(t, file), "next", "7.1")
}

// TestTheOldFileStaysUntilTheNewIsWhole lets the new file fail to be made.
func TestTheOldFileStaysUntilTheNewIsWhole(t *testing.T) {
	r := newResource(t)
	requirePut(t, r, "6.1", "kept", http.StatusNoContent)
	require.NoError(t, os.Mkdir(r.file+".new", 0o700))
	requirePut(t, r, "6.2", "not saved", http.StatusInternalServerError)
	requireValue(t, openResource(t, r.file), "kept", "6.1")
}

func TestADamagedFileIsNoEmptyFence(t *testing.T) {
	for _, text := range []string{"", "{", `{"fence":"6"}`, `{"fence":6.1}`} {
		file := filepath.Join(t.TempDir(), "value.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := OpenResource(file, hclog.NewNullLogger())
		require.ErrorContains(t, err, "read value and fence from "+file, text)
	}
}

func TestWhatIsNotSavedIsNotConfirmed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.Mkdir(dir, 0o700))
	r := openResource(t, filepath.Join(dir, "value.json"))
	require.NoError(t, os.Remove(dir))

	requirePut(t, r, "6.1", "x", http.StatusInternalServerError)
	requireValue(t, r, "", "0.0")
	requirePut(t, r, "5.1", "late", http.StatusPreconditionFailed) // the fence is on the safe side

	require.NoError(t, os.Mkdir(dir, 0o700))
	requirePut(t, r, "6.1", "tried again", http.StatusNoContent)
	requireValue(t, r, "tried again", "6.1")
}

// TestValueAndFenceGoTogether lets requests overlap whose tokens rise: however
// they come, value and fence are of the newest in the end, in memory and on disk.
func TestValueAndFenceGoTogether(t *testing.T) {
	const clients, requests = 4, 50
	r := newResource(t)
	var counter atomic.Uint64
	var codes [clients]map[int]int
	var wg sync.WaitGroup
	for i := range clients {
		codes[i] = map[int]int{}
		wg.Go(func() {
			for range requests {
				token := at(1, counter.Add(1)).String()
				codes[i][send(r, http.MethodPut, token, token).Code]++
			}
		})
	}
	wg.Wait()
	for _, c := range codes {
		require.Equal(t, requests, c[http.StatusNoContent]+c[http.StatusPreconditionFailed], "%v", codes)
	}
	newest := at(1, clients*requests).String()
	requireValue(t, r, newest, newest)
	requireValue(t, openResource(t, r.file), newest, newest)
}

func TestPutTellsBothTokens(t *testing.T) {
	server := httptest.NewServer(newResource(t))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	require.NoError(t, put(t.Context(), server.URL, at(6, 1), "x"))
	err := put(t.Context(), server.URL, at(5, 3), "late")
	var stale *lsn.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, lsn.StaleError{Got: at(5, 3), Newest: at(6, 1)}, *stale)

	err = put(t.Context(), server.URL, lsn.LSN{}, "forgotten token")
	require.ErrorContains(t, err, "write "+server.URL+": Bad Request: Fencing-Token: 0.0 is of no leadership")
}

// TestPutIsNotFooledByOthers: 412 may also be the word of a proxy.
func TestPutIsNotFooledByOthers(t *testing.T) {
	for answer, want := range map[string]string{"{}": "write", "<html>": "412 Precondition Failed, without saying why"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = io.WriteString(w, answer)
		}))
		err := put(t.Context(), server.URL, at(5, 3), "x")
		require.ErrorContains(t, err, want)
		require.NotErrorAs(t, err, new(*lsn.StaleError))
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	}
}
