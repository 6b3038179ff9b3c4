package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// FuzzBodies posts anything: it is refused, or is one JSON object.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{`{}`, ` `, `null`, `{"to":"b"} x`, `{"links":[{"delay_s":1e99}]}`,
		"{\"to\":\"\xff\"}"} {
		f.Add(body)
	}
	var to cluster.NodeID
	handlers := map[bool]http.Handler{
		false: posted(func(_ http.ResponseWriter, _ *http.Request, r TransferRequest) { to = r.To }),
		true:  posted(func(http.ResponseWriter, *http.Request, FaultRequest) {}),
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, handler := range handlers {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
			if w.Code == http.StatusOK {
				text := strings.TrimSpace(body)
				require.True(t, text == "" || text[0] == '{' && text[len(text)-1] == '}')
				require.NotContains(t, to, "\ufffd", "it was changed")
			} else {
				require.Equal(t, http.StatusBadRequest, w.Code)
			}
		}
	})
}

// FuzzAnswers lets a stranger answer anything: no text of it reaches a terminal as it is.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("{\"node\":\"a\\u001b\",\"groups\":[{\"group\":\"g\x1b\"}]}"))
	f.Add([]byte("id: 1-1\nevent: reset\ndata: {\"reason\":\"\\u0007\"}\n\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		harmless := func(texts ...string) {
			for _, text := range texts {
				bad := func(r rune) bool { return !unicode.IsPrint(r) }
				require.Negative(t, strings.IndexFunc(text, bad), "%q", text)
			}
		}
		var st cluster.Status
		if err := decode(strings.NewReader(string(answer)), &st); err == nil {
			harmless(string(st.Node), st.Version, st.AdminAddr, st.Failure)
			for _, m := range st.Members {
				harmless(string(m.Node), m.Version, m.AdminAddr, m.LinkError)
			}
		}
		s := Stream{
			Event: func(e Event) { harmless(string(e.Node), e.Group, e.Reason, string(e.Leader)) },
			Reset: func(r Reset) { harmless(r.Reason, string(r.Status.Node)) },
		}
		_ = s.read(strings.NewReader(string(answer)), func() {})
	})
}
