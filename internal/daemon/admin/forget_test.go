package admin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestANodeIsToldToForgetAnother(t *testing.T) {
	_, c := serve(t, nil, "b")
	st, err := c.Forget(t.Context(), ForgetRequest{Node: "b"})
	require.NoError(t, err, "nothing is known of it")
	require.Equal(t, "a", string(st.Node))
	for body, want := range map[string]string{
		`{"node": "a"}`: "that is this node",
		`{"node": "x"}`: "no member has that name",
		`{}`:            "no member has that name",
	} {
		code, text := request(t, c, "POST", "/v1/forget", body)
		require.Equal(t, http.StatusConflict, code)
		require.Contains(t, text, want)
	}
}
