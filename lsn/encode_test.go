package lsn_test

import (
	"encoding"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

var (
	_ encoding.TextAppender      = lsn.LSN{}
	_ encoding.TextMarshaler     = lsn.LSN{}
	_ encoding.TextUnmarshaler   = (*lsn.LSN)(nil)
	_ encoding.BinaryAppender    = lsn.LSN{}
	_ encoding.BinaryMarshaler   = lsn.LSN{}
	_ encoding.BinaryUnmarshaler = (*lsn.LSN)(nil)
)

// A number above 2^53 would lose its last digits in JavaScript.
var large = lsn.LSN{Term: lsn.MaxTerm, Counter: 1<<64 - 1}

// note is how a user's own type holds LSNs.
type note struct {
	At   lsn.LSN
	Last *lsn.LSN
	By   map[lsn.LSN]string
}

func TestJSONHoldsText(t *testing.T) {
	in := note{At: at(5, 2), Last: &large, By: map[lsn.LSN]string{{Term: 1}: "a"}}
	b, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"At":"5.2","Last":"9223372036854775807.18446744073709551615","By":{"1.0":"a"}}`, string(b))

	var out note
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in, out)
}

func TestMsgpackRoundTrip(t *testing.T) {
	in := note{At: at(5, 2), Last: &large}
	var b []byte
	require.NoError(t, codec.NewEncoderBytes(&b, &codec.MsgpackHandle{}).Encode(in))
	var out note
	require.NoError(t, codec.NewDecoderBytes(b, &codec.MsgpackHandle{}).Decode(&out))
	require.Equal(t, in, out)
}

func TestBinaryIsTermThenCounter(t *testing.T) {
	b, err := lsn.LSN{Term: 0x0102, Counter: 0x03}.MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3}, b)
}

// TestRefusedFormsChangeNothing: a read that fails leaves the LSN as it was.
func TestRefusedFormsChangeNothing(t *testing.T) {
	fromJSON := func(l *lsn.LSN, b []byte) error { return json.Unmarshal(b, l) }
	for _, c := range []struct {
		read func(*lsn.LSN, []byte) error
		from string
		why  string
	}{
		{fromJSON, `5.2`, "cannot unmarshal number"},
		{fromJSON, `"5"`, "no dot"},
		{fromJSON, `"9223372036854775808.1"`, "above the highest"},
		{(*lsn.LSN).UnmarshalText, "05.2", "leading zero"},
		{(*lsn.LSN).UnmarshalBinary, "", "got 0 bytes, want 16"},
		{(*lsn.LSN).UnmarshalBinary, "fifteen bytes..", "want 16"},
		{(*lsn.LSN).UnmarshalBinary, "seventeen bytes..", "want 16"},
		{(*lsn.LSN).UnmarshalBinary, "\x80" + strings.Repeat("\x00", 15), "above the highest"},
	} {
		l := large
		require.ErrorContains(t, c.read(&l, []byte(c.from)), c.why, "%q", c.from)
		require.Equal(t, large, l, "%q", c.from)
	}
}

// TestAppendKeepsWhatWasThere, also where a term is absurd and cannot be written.
func TestAppendKeepsWhatWasThere(t *testing.T) {
	for name, appendTo := range map[string]func(lsn.LSN, []byte) ([]byte, error){
		"text": lsn.LSN.AppendText, "binary": lsn.LSN.AppendBinary,
	} {
		b, err := appendTo(at(5, 2), []byte("at "))
		require.NoError(t, err)
		require.Equal(t, "at ", string(b[:3]), name)
		require.Greater(t, len(b), 3, name)
		b, err = appendTo(at(lsn.MaxTerm+1, 1), []byte("at "))
		require.ErrorContains(t, err, "term 9223372036854775808 is above the highest", name)
		require.Equal(t, "at ", string(b), name)
	}
	require.Equal(t, "9223372036854775808.1", at(lsn.MaxTerm+1, 1).String(), "it can be shown")
}
