package lsn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

// TestHotPathsDoNotAllocate covers what runs once per message.
func TestHotPathsDoNotAllocate(t *testing.T) {
	var s lsn.Sequencer
	require.NoError(t, s.Begin(1))
	var f lsn.Fence
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		l, _ := s.Next()
		_ = f.Admit(l)
		l, _ = s.Next()
		_ = f.AdmitNew(l)
		b, _ := l.AppendBinary(buf)
		_ = l.UnmarshalBinary(b)
		b, _ = l.AppendText(buf)
		_ = l.UnmarshalText(b)
	}))
}

func BenchmarkSequencerNext(b *testing.B) {
	var s lsn.Sequencer
	require.NoError(b, s.Begin(1))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Next()
	}
}

func BenchmarkSequencerNextContended(b *testing.B) {
	var s lsn.Sequencer
	require.NoError(b, s.Begin(1))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = s.Next()
		}
	})
}

func BenchmarkFenceAdmit(b *testing.B) {
	var f lsn.Fence
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		_ = f.Admit(at(1, n))
	}
}
