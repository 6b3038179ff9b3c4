package elector_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestRosterIsReadAsItIsWritten(t *testing.T) {
	of := elector.NewRoster(elector.Voter{Node: "c"}, aVoter, elector.Voter{Node: "b"})
	read, err := elector.ParseRoster(of.Bytes())
	require.NoError(t, err)
	require.Equal(t, of, read)
	v, known := read.Find("a")
	require.True(t, known)
	require.Equal(t, aVoter, v)
	_, known = read.Find("d")
	require.False(t, known)
	require.Equal(t, "a=2e000000,c=-", read.Without("b").String())
	require.Equal(t, "a=-,b=-,c=-", read.With(elector.Voter{Node: "a"}).String())
}

func TestWhatARosterCannotBe(t *testing.T) {
	one := elector.NewRoster(aVoter).Bytes()
	many := elector.NewRoster()
	for i := range 33 {
		many = many.With(elector.Voter{Node: elector.NodeID(fmt.Sprintf("n%02d", i))})
	}
	for want, text := range map[string][]byte{
		"voters: 3 bytes are left for voter 1, it needs 18":  one[:3],
		`voters: name "\n" is one with spaces`:               append([]byte{1, '\n'}, one[2:]...),
		`voters: "a" after "a", they must be in order`:       append(one[:18:18], one...),
		"voters: there are 0, it must be 1 to 32":            nil,
		"voters: there are 33, it must be 1 to 32":           many.Bytes(),
		`voters: name "*" is that of all members`:            append([]byte{1, '*'}, one[2:]...),
		"voters: 1 bytes are left for voter 1, it needs 17":  {0},
		"is 255 bytes long, and the limit is 128":            bytes.Repeat([]byte{255}, 300),
		"voters: 2 bytes are left for voter 1, it needs 272": {255, 1},
		`voters: name "" is empty`:                           make([]byte, 17),
	} {
		_, err := elector.ParseRoster(text)
		require.ErrorContains(t, err, want)
	}
}

func TestWhatARecordCannotBe(t *testing.T) {
	sound := recordOf(3, 2)
	sound.Value = elector.Value{LSN: lsn.LSN{Term: 3, Counter: 1}, Size: 1, Hash: [32]byte{1}}
	require.NoError(t, sound.Check())
	for want, change := range map[string]func(*elector.Record){
		"voters: there are 0":         func(r *elector.Record) { r.Voters = elector.Roster{} },
		"LSN 0.2 is of no leadership": func(r *elector.Record) { r.LSN.Term = 0 },
		"LSN 3.0 is of no leadership": func(r *elector.Record) { r.LSN.Counter = 0 },
		"its value is of 3.3, after":  func(r *elector.Record) { r.Value.LSN.Counter = 3 },
		"an LSN and a hash, or it is": func(r *elector.Record) { r.Value.Hash = [32]byte{} },
		"or it is empty and has":      func(r *elector.Record) { r.Value = elector.Value{Size: 1} },
		"is founded has a lineage":    func(r *elector.Record) { r.Founded = true },
		"the limit is 1048576":        func(r *elector.Record) { r.Value.Size = 1<<20 + 1 },
	} {
		r := sound
		change(&r)
		require.ErrorContains(t, r.Check(), want)
	}
}

// A message must say of its record what the record itself says: rules look at the one or the other.
func TestAnOfferAgreesWithItsMessage(t *testing.T) {
	newer := recordOf(2, 2)
	newer.Lineage, newer.Founded = directory("a"), true
	sound := elector.Message{Kind: elector.RecordOffer, Term: 2, Record: newer.LSN, Offer: &newer,
		Lineage: newer.Lineage, Founded: newer.Founded}
	d := recorded(t)
	d.hear("b", sound)
	require.Equal(t, newer, d.Record().Accepted)
	for what, change := range map[string]func(*elector.Message){
		"record":  func(m *elector.Message) { m.Record.Counter++ },
		"lineage": func(m *elector.Message) { m.Lineage = directory("b") },
		"founded": func(m *elector.Message) { m.Founded = false },
		"offer":   func(m *elector.Message) { m.Offer = nil },
	} {
		m, d := sound, recorded(t)
		change(&m)
		require.Equal(t, elector.AnomalyMalformed, d.hear("b", m).Anomaly.Kind, what)
		require.Equal(t, recordOf(2, 1), d.Record().Accepted, what)
	}
}
