package store

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

var powerSeeds = flag.Int("power-seeds", 3, "how many histories TestNoLossOfPowerLosesAnything plays")

// platter is a disk whose power fails at any moment of a write. What was synced is there after
// that. Of what was written since, each sector has its old content or one of those that it got.
type platter struct {
	*testing.T
	dir    string
	random *rand.Rand
	synced map[string][]byte   // by file
	seen   map[string][][]byte // by file, what it was since
	// before is what was durable before the write that is under way, and after what is so after it.
	before, after map[string]Durable
	losses        int
}

const sector = 512

// long is a name that makes the state larger than a small journal, which then grows.
var long = strings.Repeat("long", 8_000)

// start opens the directory, as a process does.
func (p *platter) start() *Store {
	s, err := openWith(p.dir, p.write, func(s *Store) error {
		s.sync, s.many = p.sync, manyGroups // each group has terms of its own
		return s.start(alice)
	})
	require.NoError(p, err)
	return s
}

// note keeps what the files are now, as the kernel has them.
func (p *platter) note() {
	for _, name := range []string{stateFile, journalFile} {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		switch {
		case os.IsNotExist(err):
		case p.synced[name] == nil: // it was made, which ends with a sync
			p.synced[name] = text
		default:
			require.NoError(p, err)
			p.seen[name] = append(p.seen[name], text)
		}
	}
}

// flush makes durable what was noted of a file.
func (p *platter) flush(name string) {
	if all := p.seen[name]; len(all) > 0 {
		p.synced[name] = all[len(all)-1]
	}
	delete(p.seen, name)
}

// sync is the journal's. The power may fail before it.
func (p *platter) sync(f *os.File) error {
	if filepath.Base(f.Name()) == journalFile {
		p.note()
		p.fail(p.before, p.after)
		p.flush(journalFile)
	}
	return nil
}

// write carries out a write. bbolt syncs its pages, then its meta page.
func (p *platter) write(write func() error) error {
	p.note()
	if err := write(); err != nil {
		return err
	}
	p.note()
	if all := p.seen[stateFile]; !bytes.Equal(all[len(all)-1], p.synced[stateFile]) {
		p.fail(p.before, p.before)
		p.flush(stateFile)
	}
	p.fail(p.after, p.after)
	return nil
}

// lose returns what a file may be after a loss of power.
func (p *platter) lose(name string) []byte {
	left, start := bytes.Clone(p.synced[name]), 0
	if name == stateFile {
		start = 2 * pageSize // the meta pages: see write
	}
	odds := p.random.IntN(3) // all, half or no sectors
	for _, content := range p.seen[name] {
		for at := start; at < len(content); at += sector {
			if p.random.IntN(2) < odds {
				left = append(left, make([]byte, max(0, at+sector-len(left)))...)
				copy(left[at:], content[at:at+sector])
			}
		}
	}
	return left
}

// fail starts on what is left after losses of power. All groups must be as in one, or all as in
// other; and what is written then must stay.
func (p *platter) fail(one, other map[string]Durable) {
	for range 4 {
		p.losses++
		dir := filepath.Join(p.TempDir(), "left")
		for _, name := range []string{stateFile, journalFile} {
			p.put(dir, name, p.lose(name))
		}
		s, err := OpenOn(dir, alice, unsynced)
		require.NoError(p, err)
		has := contents(p, s, other)
		if !slices.Equal(brief(has), brief(one)) {
			require.Equal(p, brief(other), brief(has), "nor as before: %q", brief(one))
		}
		has["new"] = recorded(1<<40, 1, []byte("new"))
		require.NoError(p, s.Persist(map[string]Durable{"new": has["new"]}))
		require.NoError(p, s.Close())
		s, err = OpenOn(dir, alice, unsynced)
		require.NoError(p, err)
		require.Equal(p, brief(has), brief(contents(p, s, has)))
		require.NoError(p, s.Close())
	}
}

// put writes a file of a directory, unless it never was one.
func (p *platter) put(dir, name string, content []byte) {
	require.NoError(p, os.MkdirAll(dir, 0o700))
	_ = os.Remove(filepath.Join(dir, name))
	if content != nil {
		require.NoError(p, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
}

// persist makes something durable of some groups.
func (p *platter) persist(s *Store) {
	p.before, p.after = p.after, maps.Clone(p.after)
	wanted := map[string]Durable{}
	for _, group := range []string{"a", "b", long}[p.random.IntN(3):] {
		d := p.before[group]
		term := d.Terms.Entered + lsn.Term(p.random.IntN(3))
		next := Durable{Terms: elector.Terms{Entered: term, Reserved: term + 15}}
		if p.random.IntN(4) > 0 && term > 0 {
			value := make([]byte, p.random.IntN(p.random.IntN(20_000)+1))
			for i := range value {
				value[i] = byte(p.random.Uint32())
			}
			next = recorded(term, d.Record.LSN.Counter+1, value)
			if p.random.IntN(3) == 0 && len(d.Value) > 0 { // the same value, which is not given again
				next.Record.Value, next.Value = d.Record.Value, nil
			}
		}
		wanted[group] = next
		if next.Record == (elector.Record{}) {
			next.Record, next.Value = d.Record, d.Value
		} else if next.Record.Value == d.Record.Value {
			next.Value = d.Value
		}
		p.after[group] = next
	}
	require.NoError(p, s.Persist(wanted))
	p.before = p.after
}

func TestNoLossOfPowerLosesAnything(t *testing.T) {
	smallJournal(t) // so that it is full soon
	losses := 0
	for seed := range *powerSeeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			p := &platter{
				T: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(uint64(seed), 1)),
				synced: map[string][]byte{}, seen: map[string][][]byte{},
				after: map[string]Durable{"a": {}, "b": {}, long: {}},
			}
			p.before = p.after
			s := p.start()
			for range 40 {
				switch p.random.IntN(12) {
				case 0:
					require.NoError(t, s.SavePause(nil))
				case 1: // the power fails, and the node starts again
					require.NoError(t, s.Close())
					for name := range p.synced {
						p.put(p.dir, name, p.lose(name))
					}
					clear(p.synced)
					clear(p.seen)
					s = p.start()
					require.Equal(t, brief(p.after), brief(contents(t, s, p.after)))
				default:
					p.persist(s)
				}
			}
			require.Greater(t, s.journal.size, journalSize)
			require.NoError(t, s.Close())
			losses += p.losses
		})
	}
	t.Logf("%d losses of power", losses)
}

// contents returns what a store has of the given groups.
func contents(t require.TestingT, s *Store, groups map[string]Durable) map[string]Durable {
	all := map[string]Durable{}
	for name := range groups {
		has, err := s.Group(name)
		require.NoError(t, err)
		all[name] = has
	}
	return all
}

// brief are groups on a line each, to be compared and printed.
func brief(groups map[string]Durable) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		d := groups[name]
		lines = append(lines, fmt.Sprintf("%s: %+v %s, %d bytes %x", name, d.Terms, d.Record,
			len(d.Value), sha256.Sum256(d.Value)))
	}
	return lines
}
