package recording

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("RECORDING_WRITER"); dir != "" {
		writeForever(dir)
	}
	os.Exit(m.Run())
}

func moment(n int) Record {
	return Record{Age: float64(n), Node: "a", Boot: 1, Kind: Held, Seconds: float64(n)}
}

func appendAll(t *testing.T, l *Log, records ...Record) {
	t.Helper()
	for _, r := range records {
		require.NoError(t, l.Append(r))
	}
}

func read(t *testing.T, dir string) (records []Record, damaged int) {
	t.Helper()
	records, damaged, err := Read(dir, Recording)
	require.NoError(t, err)
	return records, damaged
}

func TestALogStaysWithinItsSizeAndKeepsWhatIsSo(t *testing.T) {
	for _, name := range []Name{Recording, History} {
		dir := t.TempDir()
		l := New(dir, name)
		appendAll(t, l,
			Record{Age: 0, Boot: 1, Kind: Started, Identity: "the first"},
			Record{Age: 1, Boot: 1, Kind: Opened, Group: "g", Setup: &Setup{Voters: []string{"a"}}},
			Record{Age: 2, Boot: 1, Kind: Opened, Group: "left"},
			Record{Age: 3, Boot: 1, Kind: LinkUp, Peer: "b"},
			Record{Age: 4, Boot: 1, Kind: Transition, Group: "left", To: dormant},
		)
		const count = 40_000
		for n := range count {
			require.NoError(t, l.Append(moment(n+5)))
		}
		require.NoError(t, l.Close())
		total := 0
		for _, file := range []string{string(name), string(name) + older} {
			info, err := os.Stat(filepath.Join(dir, file))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
			total += int(info.Size())
		}
		require.LessOrEqual(t, total, sizes[name])
		require.Greater(t, total, sizes[name]/2, "the older half is there")
		records, damaged, err := Read(dir, name)
		require.NoError(t, err)
		require.Zero(t, damaged)
		require.Equal(t, []Kind{Started, Opened, LinkUp, Held}, []Kind{records[0].Kind, records[1].Kind,
			records[2].Kind, records[3].Kind}, "and not the election that was left")
		require.Equal(t, []string{"a"}, records[1].Setup.Voters)
		for i, r := range records[3:] {
			require.InDelta(t, count+4-(len(records)-4-i), r.Age, 0, "the newest, without a gap, each once")
		}
	}
}

func TestDamageCostsTheLinesThatItIsIn(t *testing.T) {
	whole := func(t *testing.T) (dir string, text []byte) {
		dir = t.TempDir()
		l := New(dir, Recording)
		appendAll(t, l, moment(0), moment(1), moment(2), moment(3))
		require.NoError(t, l.Close())
		text, err := os.ReadFile(filepath.Join(dir, string(Recording)))
		require.NoError(t, err)
		return dir, text
	}
	for name, c := range map[string]struct {
		damage  func(text []byte) []byte
		ages    []float64
		damaged int
	}{
		"none":          {func(b []byte) []byte { return b }, []float64{0, 1, 2, 3}, 0},
		"a torn tail":   {func(b []byte) []byte { return b[:len(b)-7] }, []float64{0, 1, 2}, 1},
		"no last break": {func(b []byte) []byte { return b[:len(b)-1] }, []float64{0, 1, 2, 3}, 0},
		"one bit": {func(b []byte) []byte { b[len(b)/4+20] ^= 1; return b },
			[]float64{0, 2, 3}, 1},
		"zeros in the middle": {func(b []byte) []byte {
			copy(b[len(b)/4+5:], make([]byte, len(b)/2-10))
			return b
		}, []float64{0, 3}, 1},
		"only noise": {func([]byte) []byte { return bytes.Repeat([]byte{0xff}, 1000) }, nil, 1},
		"nothing":    {func([]byte) []byte { return nil }, nil, 0},
	} {
		dir, text := whole(t)
		path := filepath.Join(dir, string(Recording))
		require.NoError(t, os.WriteFile(path, c.damage(text), 0o600))
		records, damaged := read(t, dir)
		require.Equal(t, c.ages, agesOf(records), name)
		require.Equal(t, c.damaged, damaged, name)

		again := New(dir, Recording)
		appendAll(t, again, moment(9))
		require.NoError(t, again.Close())
		records, _ = read(t, dir)
		require.Equal(t, append(c.ages, 9), agesOf(records), "%s: what comes after is whole", name)
	}
}

func agesOf(records []Record) (ages []float64) {
	for _, r := range records {
		ages = append(ages, r.Age)
	}
	return ages
}

// writeForever is another process, which is killed.
func writeForever(dir string) {
	l := New(dir, Recording)
	for n := 0; ; n++ {
		if err := l.Append(moment(n)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if n == 20_000 { // the log has turned
			fmt.Println("go")
		}
	}
}

func TestAWriterIsKilled(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "RECORDING_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		require.NoError(t, err)
		_, damagedBefore, err := Read(dir, Recording) // while it is written
		require.NoError(t, err)
		require.LessOrEqual(t, damagedBefore, 2)
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		_ = cmd.Wait()
		records, damaged := read(t, dir)
		require.Greater(t, len(records), 1000)
		require.LessOrEqual(t, damaged, 2, "the ends that were torn")
		appendAll(t, New(dir, Recording), moment(1<<30))
		records, _ = read(t, dir)
		require.InDelta(t, 1<<30, records[len(records)-1].Age, 0)
	}
}

// full is a file on a disk with little room: what does not fit is written in part.
type full struct {
	file
	room *int
}

func (f full) Write(p []byte) (int, error) {
	n := min(len(p), *f.room)
	*f.room -= n
	n, err := f.file.Write(p[:n])
	if n < len(p) {
		err = errors.Join(err, syscall.ENOSPC)
	}
	return n, err
}

func TestAFullDiskLosesWhatDoesNotFit(t *testing.T) {
	dir, room := t.TempDir(), 0
	l := New(dir, Recording)
	l.open = func(path string) (file, error) {
		f, err := openFile(path)
		return full{f, &room}, err
	}
	room = 250
	appendAll(t, l, moment(0), moment(1))
	for n := range 3 {
		require.ErrorIs(t, l.Append(moment(n+2)), syscall.ENOSPC)
	}
	room = 1000
	appendAll(t, l, moment(7))
	records, damaged := read(t, dir)
	require.Equal(t, []float64{0, 1, 7}, agesOf(records))
	require.Equal(t, 1, damaged)
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	l := New(dir, Recording)
	require.ErrorIs(t, l.Append(moment(0)), os.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	appendAll(t, l, moment(1))
	long := Record{Kind: LinkDown, Why: string(bytes.Repeat([]byte("x"), 1<<20))}
	require.ErrorContains(t, l.Append(long), "a record of 1048")
	records, _ := read(t, dir)
	require.Equal(t, []float64{1}, agesOf(records))

	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, string(History)), 0o600))
	_, _, err := Read(dir, History)
	require.ErrorContains(t, err, "no regular file")
	require.Error(t, New(dir, History).Append(moment(0)), "and it does not wait for a reader")
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	good := Record{Time: time.Unix(0, 0).UTC(), Age: 1, Kind: LinkUp, Peer: "b"}
	line, err := encode(&good)
	require.NoError(f, err)
	f.Add(line, []byte("\n"))
	f.Add(line[:20], []byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		text := bytes.Join([][]byte{before, line, after}, []byte("\n"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, string(History)), text, 0o600))
		records, _, err := Read(dir, History)
		if len(text) > sizes[History] {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Contains(t, records, good, "whatever stands around it")
	})
}
