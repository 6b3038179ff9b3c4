package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// journalSize is that of the whole file, in bytes, when it is made. All of them are written then:
// later writes change nothing of the file except its content, and need no more than one fdatasync.
var journalSize int64 = 4 << 20 // a test changes it

// maxJournal bounds the size to which a journal grows.
const maxJournal = 1 << 30

// headerSize is that of a header, in bytes.
const headerSize = 28

// journal is a file of batches, which change the state in the bbolt file: what one commit to that
// would write in two steps, with a sync after each, takes one here. It serves directories with
// records only.
//
// The batches belong to the commit that wrote the state, their epoch: the next commit contains what
// they changed, and the journal begins again. A batch begins a page, with a header in the first
// sector of it. Once the batch is on disk a seal follows, the header of an empty batch. So a batch
// that is not whole and that nothing follows was being written when the power failed, and nobody
// was told of it. If something follows, it is damaged.
type journal struct {
	file  *os.File
	sync  func(*os.File) error
	owner uuid.UUID // of the directory; its checksums are no other's
	size  int64     // of the file, in bytes; after a crash the file may be longer
	epoch uint64
	seq   uint64 // of the newest batch
	at    int64  // where the next one begins
}

// header is what precedes a batch.
type header struct {
	Epoch, Seq uint64
	Size, Sum  uint32 // of the batch
	Check      uint32 // of the header
}

// openJournal opens the journal of the directory, of that size. If anew, it makes one without
// batches; a crash may leave any part of that, which is made again unless the state has records.
func (s *Store) openJournal(owner uuid.UUID, size int64, anew bool) (*journal, error) {
	flags := os.O_RDWR
	if anew {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	file, err := limit.OpenFile(filepath.Join(s.dir, journalFile), flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("it is gone, though the directory has records")
	}
	if err == nil && anew {
		_, err = file.Write(make([]byte, size))
		if err == nil {
			err = errors.Join(s.sync(file), s.syncNames())
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &journal{file: file, sync: s.sync, owner: owner, size: size}, nil
}

// grow makes the journal at least as large as the state, which is written whenever the journal is
// full: so each change of a group costs about as many bytes with many groups as with few. The next
// commit must save the new size. A journal that finds no room stays as it is.
func (j *journal) grow(state int) error {
	size := j.size
	for size < int64(state) && size < maxJournal {
		size *= 2
	}
	if size == j.size {
		return nil
	}
	_, err := j.file.WriteAt(make([]byte, size-j.size), j.size)
	if err == nil {
		err = j.sync(j.file)
	}
	switch {
	case err == nil:
		j.size = size
	case isFull(err): // it gives back what it took
		err = j.file.Truncate(j.size)
	}
	return err
}

// encodeBatch returns a batch of what is new of groups: the size of a text in JSON, that text, and
// the values, in the order of the groups. Values in JSON would take a third more of the journal.
func encodeBatch(news map[string]Durable) ([]byte, error) {
	text, err := json.Marshal(news)
	size := 4 + len(text)
	for _, d := range news {
		size += len(d.Value)
	}
	batch := binary.BigEndian.AppendUint32(make([]byte, 0, size), uint32(len(text)))
	batch = append(batch, text...)
	for _, group := range slices.Sorted(maps.Keys(news)) {
		batch = append(batch, news[group].Value...)
	}
	return batch, err
}

// decodeBatch returns what a batch changes of a state, or what forbids that.
func (s *state) decodeBatch(batch []byte) (news map[string]Durable, err error) {
	text := batch[min(4, len(batch)):]
	if len(text) == 0 || int64(binary.BigEndian.Uint32(batch)) > int64(len(text)) {
		return nil, fmt.Errorf("a batch of %d bytes is too short", len(batch))
	}
	text, values := text[:binary.BigEndian.Uint32(batch)], text[binary.BigEndian.Uint32(batch):]
	err = json.Unmarshal(text, &news)
	for _, group := range slices.Sorted(maps.Keys(news)) {
		d := news[group]
		if d.Record.Value.Hash != s.Records[group].Value.Hash { // it has one of its own
			size := min(int(d.Record.Value.Size), len(values))
			d.Value, values = bytes.Clone(values[:size]), values[size:]
		}
		// After Forget, of which the journal tells nothing, a group begins anew.
		d.Terms.Entered = max(d.Terms.Entered, s.terms(group).Entered)
		d, _, wrong := s.news(group, d)
		news[group], err = d, cmp.Or(err, wrong)
	}
	return news, err
}

// begin empties the journal for the state that a commit wrote.
func (j *journal) begin(epoch int) { j.epoch, j.seq, j.at = uint64(epoch), 0, 0 }

// header returns that of the next batch; for an empty one, the seal of the newest.
func (j *journal) header(batch []byte) []byte {
	text := make([]byte, headerSize, headerSize+len(batch))
	h := header{j.epoch, j.seq + 1, uint32(len(batch)), crc32.Checksum(batch, castagnoli), 0}
	for range 2 { // the second time with its checksum
		_, _ = binary.Encode(text, binary.BigEndian, h)
		h.Check = j.check(text)
	}
	return text
}

// check is the checksum of a header.
func (j *journal) check(text []byte) uint32 {
	return crc32.Update(crc32.Checksum(j.owner[:], castagnoli), castagnoli, text[:headerSize-4])
}

// after is where a batch of that size ends that begins at at: at the end of a page.
func after(at int64, size int) int64 {
	return at + (headerSize+int64(size)+pageSize-1)/pageSize*pageSize
}

// fits reports whether there is room for a batch and its seal.
func (j *journal) fits(batch []byte) bool {
	return after(j.at, len(batch))+pageSize <= j.size
}

// append adds a batch. It is on disk if append returns nil; otherwise it may or may not be.
func (j *journal) append(batch []byte) error {
	_, err := j.file.WriteAt(append(j.header(batch), batch...), j.at)
	if err == nil {
		err = j.sync(j.file)
	}
	if err == nil {
		j.at, j.seq = after(j.at, len(batch)), j.seq+1
		_, err = j.file.WriteAt(j.header(nil), j.at) // the kernel writes it when it likes
	}
	return err
}

// read returns the batches of an epoch in order, and begins the next batch after them.
func (j *journal) read(epoch int) (batches [][]byte, err error) {
	j.begin(epoch)
	text, err := limit.ReadFile(j.file.Name(), maxJournal)
	if err == nil && int64(len(text)) < j.size {
		err = fmt.Errorf("it has %d bytes, not %d", len(text), j.size)
	}
	for err == nil {
		h, ok := j.parse(text[j.at:])
		from, end := j.at+headerSize, j.at+headerSize+int64(h.Size)
		if !ok || h.Epoch != j.epoch || h.Seq != j.seq+1 || h.Size == 0 || end > j.size ||
			crc32.Checksum(text[from:end], castagnoli) != h.Sum {
			break
		}
		batches = append(batches, text[from:end])
		j.at, j.seq = after(j.at, int(h.Size)), h.Seq
	}
	for at := j.at; err == nil && at < j.size; at += pageSize {
		h, ok := j.parse(text[at:])
		switch {
		case !ok:
		case h.Epoch > j.epoch:
			err = fmt.Errorf("it is of commit %d, the state of commit %d", h.Epoch, epoch)
		case h.Epoch == j.epoch && h.Seq > j.seq+1:
			err = fmt.Errorf("batch %d of commit %d is damaged: another follows", j.seq+1, epoch)
		}
	}
	return batches, err
}

// parse returns the header at the beginning of text, if there is one.
func (j *journal) parse(text []byte) (h header, ok bool) {
	_, err := binary.Decode(text, binary.BigEndian, &h)
	return h, err == nil && h.Check == j.check(text)
}
