package demo

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/foreign"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/all"
)

var members = []elector.NodeID{"c", "a", "b"}

// runners has one of each algorithm that a mesh can run, of node a.
func runners(t *testing.T) (every []*runner) {
	for _, a := range all.Algorithms() {
		if Check(a.Name) != nil {
			continue
		}
		m, err := machines(a)(foreign.Setup{
			Election: elector.Config{Self: "a", Voters: members, Timing: elector.LAN()},
			Dir:      t.TempDir(), Send: func(elector.NodeID, []byte) {},
			Fail: func(err error) { t.Error(err) },
		})
		require.NoError(t, err)
		every = append(every, m.(*runner))
	}
	return every
}

// In a mesh that mixes algorithms, by mistake, none takes the messages of another.
func TestMessagesOfOtherAlgorithmsAreDropped(t *testing.T) {
	every := runners(t)
	for _, to := range every {
		for _, from := range every {
			for _, kind := range from.algorithm.Messages {
				body, err := from.encode(kind)
				require.NoError(t, err)
				_, err = to.decode(body)
				require.Equal(t, to == from, err == nil, "%T to %s", kind, to.algorithm.Name)
			}
		}
	}
}

// A message of any content ends no process, and has a name.
func TestNoMessagePanics(t *testing.T) {
	const rounds = 1000
	for _, r := range runners(t) {
		t.Run(r.algorithm.Name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			source := rand.New(rand.NewPCG(seed, 0))
			now := elector.Time(1)
			r.Step(now, 7, elector.Start{})
			for range rounds {
				kind := r.algorithm.Messages[source.IntN(len(r.algorithm.Messages))]
				m := reflect.New(reflect.TypeOf(kind)).Elem()
				scramble(source, m)
				body, err := r.encode(m.Interface().(algorithm.Message))
				if err != nil {
					continue // a term above the highest, which no peer can write either
				}
				if read, err := r.decode(body); err == nil {
					_, _ = read.Name(), read.String()
				}
				now += elector.Time(source.Int64N(int64(elector.LAN().Inactivity())))
				from := members[source.IntN(len(members))]
				switch source.IntN(8) {
				case 0:
					r.Step(now, source.Uint64(), elector.LinkUp{Peer: from})
				case 1:
					r.Step(now, source.Uint64(), elector.LinkDown{Peer: from})
				}
				r.Receive(from, body)
				r.Step(now, source.Uint64(), elector.Tick{})
				r.Status()
			}
		})
	}
}

// scramble fills a value with what a message may hold: small and great numbers, members and
// strangers, no elements and some.
func scramble(source *rand.Rand, v reflect.Value) {
	number := []uint64{0, 1, 2, 3, 1 << 40, 1<<63 - 1, 1<<64 - 1}[source.IntN(7)]
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(number%2 == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "b", "c", "stranger"}[source.IntN(5)])
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), source.IntN(4), 4))
		for i := range v.Len() {
			scramble(source, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			scramble(source, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scramble(source, v.Field(i))
		}
	case reflect.Float32, reflect.Float64:
		v.SetFloat(source.NormFloat64())
	default:
		if v.CanInt() {
			v.SetInt(int64(number))
			return
		}
		v.SetUint(number)
	}
}

// The order of preference does not depend on how one node writes its list of voters.
func TestTheOrderIsTheSameOnEveryNode(t *testing.T) {
	var order []algorithm.NodeID
	_, err := machines(algorithm.Algorithm{
		New: func(c algorithm.Config) algorithm.Machine { order = c.Order; return nil },
	})(foreign.Setup{Election: elector.Config{Self: "a", Voters: members}, Dir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, []algorithm.NodeID{"a", "b", "c"}, order)
}

// forgetful is a machine that persists when it starts.
type forgetful struct{}

func (forgetful) View() algorithm.View { return algorithm.View{} }
func (forgetful) Step(algorithm.Time, uint64, algorithm.Input) algorithm.Effects {
	return algorithm.Effects{Persist: struct{ Term uint64 }{1}, Wake: elector.Never}
}

// A node that cannot keep its algorithm's state fails; it is not mute.
func TestAFullDiskFailsTheNode(t *testing.T) {
	var failed error
	dir := t.TempDir()
	m, err := machines(algorithm.Algorithm{
		Name: "x", New: func(algorithm.Config) algorithm.Machine { return forgetful{} },
	})(foreign.Setup{
		Election: elector.Config{Self: "a", Voters: members}, Dir: dir,
		Fail: func(err error) { failed = errors.Join(failed, err) },
	})
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "x.state.new"), 0o700))
	m.Step(1, 7, elector.Start{})
	require.ErrorContains(t, failed, "state of x: ")
}
