package lsn_test

import (
	"encoding"
	"encoding/json"
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

// absurd is of a term that no node may adopt.
var absurd = lsn.LSN{Term: lsn.MaxTerm + 1, Counter: 1}

// note is how a user's own type holds LSNs.
type note struct {
	At   lsn.LSN
	Last *lsn.LSN
	By   map[lsn.LSN]string
}

func TestJSONHoldsText(t *testing.T) {
	in := note{At: lsn.LSN{Term: 5, Counter: 2}, Last: &large, By: map[lsn.LSN]string{{Term: 1}: "a"}}
	b, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"At":"5.2","Last":"9223372036854775807.18446744073709551615","By":{"1.0":"a"}}`, string(b))

	var out note
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in, out)
}

func TestJSONRefusesNumbersAndBadText(t *testing.T) {
	for _, text := range []string{`{"At":5.2}`, `{"At":"5"}`, `{"At":"05.2"}`,
		`{"At":"9223372036854775808.1"}`} {
		out := note{At: large}
		require.Error(t, json.Unmarshal([]byte(text), &out), text)
		require.Equal(t, large, out.At, "a failed read must not change the LSN: %s", text)
	}
}

func TestMsgpackRoundTrip(t *testing.T) {
	in := note{At: lsn.LSN{Term: 5, Counter: 2}, Last: &large}
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

func TestBinaryRefusesOtherLengthsAndAbsurdTerms(t *testing.T) {
	for size := range 40 {
		out := large
		err := out.UnmarshalBinary(make([]byte, size))
		if size == 16 {
			require.NoError(t, err)
			require.Zero(t, out)
			continue
		}
		require.ErrorContains(t, err, "want 16", "%d bytes", size)
		require.Equal(t, large, out)
	}
	highBit := append([]byte{0x80}, make([]byte, 15)...)
	out := large
	require.ErrorContains(t, out.UnmarshalBinary(highBit), "above the highest")
	require.Equal(t, large, out)
}

func TestAbsurdTermsAreNotWritten(t *testing.T) {
	_, err := absurd.MarshalText()
	require.ErrorContains(t, err, "term 9223372036854775808 is above the highest")
	_, err = absurd.MarshalBinary()
	require.ErrorContains(t, err, "term 9223372036854775808 is above the highest")
	require.Equal(t, "9223372036854775808.1", absurd.String(), "but they can be shown")
}

func TestAppendKeepsWhatWasThere(t *testing.T) {
	for name, appendTo := range map[string]func(lsn.LSN, []byte) ([]byte, error){
		"text": lsn.LSN.AppendText, "binary": lsn.LSN.AppendBinary,
	} {
		b, err := appendTo(lsn.LSN{Term: 5, Counter: 2}, []byte("at "))
		require.NoError(t, err)
		require.Equal(t, "at ", string(b[:3]), name)
		require.Greater(t, len(b), 3, name)

		b, err = appendTo(absurd, []byte("at "))
		require.Error(t, err)
		require.Equal(t, "at ", string(b), name)
	}
}
