package netmesh

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	maxFindings = 1024        // kept at a time
	maxRefused  = 64          // of them those that anybody who connects can cause
	refusedLife = time.Minute // how long a refusal that does not come again counts
)

// findings are what is wrong at the moment. Its lock is taken last: under it
// nothing is called.
type findings struct {
	mu  sync.Mutex
	all map[findingKey]*found
}

type findingKey struct {
	kind FindingKind
	peer elector.NodeID
}

type found struct {
	Finding

	seen    time.Time
	refused bool // by a handshake: it expires
}

// raise notes that f is so, and reports whether that is news.
func (fs *findings) raise(f Finding, now time.Time, refused bool) (news bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.expire(now)
	key := findingKey{f.Kind, f.Peer}
	if old := fs.all[key]; old != nil {
		f.Since = old.Since
		old.Finding, old.seen = f, now
		return false
	}
	if refused {
		fs.makeRoom()
	}
	if len(fs.all) >= maxFindings {
		return false
	}
	if fs.all == nil {
		fs.all = make(map[findingKey]*found)
	}
	f.Since = now
	fs.all[key] = &found{Finding: f, seen: now, refused: refused}
	return true
}

// clear notes that something is not so, and reports whether that is news.
func (fs *findings) clear(kind FindingKind, peer elector.NodeID) (news bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	key := findingKey{kind, peer}
	_, news = fs.all[key]
	delete(fs.all, key)
	return news
}

// forget drops what was found about a peer: what its link showed, what its
// refused handshakes showed, or both.
func (fs *findings) forget(peer elector.NodeID, linked, refused bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	maps.DeleteFunc(fs.all, func(key findingKey, f *found) bool {
		return key.peer == peer && (f.refused && refused || !f.refused && linked)
	})
}

// list returns what is wrong now, sorted by peer and kind.
func (fs *findings) list(now time.Time) []Finding {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.expire(now)
	all := make([]Finding, 0, len(fs.all))
	for _, f := range fs.all {
		all = append(all, f.Finding)
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// expire is called with mu held, as is makeRoom.
func (fs *findings) expire(now time.Time) {
	maps.DeleteFunc(fs.all, func(_ findingKey, f *found) bool { return f.refused && now.Sub(f.seen) > refusedLife })
}

// makeRoom drops the refusal that was not seen for longest if there are too many:
// strangers with names of their own choice must not hide anything else.
func (fs *findings) makeRoom() {
	count, oldest := 0, findingKey{}
	for key, f := range fs.all {
		if !f.refused {
			continue
		}
		if count++; count == 1 || f.seen.Before(fs.all[oldest].seen) {
			oldest = key
		}
	}
	if count >= maxRefused {
		delete(fs.all, oldest)
	}
}

// Findings returns what is wrong at the moment between this member and others,
// sorted by peer and kind, at most 1024. It is empty where all is well.
func (m *Mesh) Findings() []Finding { return m.findings.list(time.Now()) }

// finds takes note of what a link shows, whether it is so or no more, and logs
// what is new. Called by the link's reader or dialer, without Mesh.mu.
func (m *Mesh) finds(peer elector.NodeID, kind FindingKind, detail string) {
	if detail == "" {
		if m.findings.clear(kind, peer) {
			m.log.Debug("finding is gone", "kind", kind.String(), "peer", peer)
		}
		return
	}
	f := Finding{Kind: kind, Peer: peer, Detail: detail, Advice: advice[kind]}
	if m.findings.raise(f, time.Now(), false) {
		m.log.warn(kind.String(), string(peer), "finding", "peer", peer, "detail", f.Detail, "advice", f.Advice)
	}
}

// Report adds what was found about a peer in another way than by a link, such as
// by gossip. It is forgotten a minute after it was reported last, and when a link
// to the peer comes up. It logs nothing. Name and detail may be a stranger's words:
// they are made printable and cut to a length for people. An unknown kind is ignored.
func (m *Mesh) Report(kind FindingKind, peer elector.NodeID, detail string) {
	if kind == 0 || kind >= findingEnd {
		return
	}
	m.findings.raise(Finding{
		Kind: kind, Peer: elector.NodeID(printable(string(peer[:min(len(peer), MaxNameLength)]))),
		Detail: printable(detail[:min(len(detail), maxText)]), Advice: advice[kind],
	}, time.Now(), true)
}

// refused takes note of a handshake that failed. The log line is the caller's.
func (m *Mesh) refused(peer elector.NodeID, at string, err error) {
	var r *refusal
	if errors.As(err, &r) {
		m.Report(findingOf(r.Reason), peer, fmt.Sprintf("%v; at %s", r, at))
	}
}

// withAdvice adds what to do about a refusal to the fields of its log line.
func withAdvice(r Reason, fields ...any) []any {
	if kind := findingOf(r); kind != 0 {
		return append(fields, "advice", advice[kind])
	}
	return fields
}
