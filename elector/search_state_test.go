package elector_test

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// snapshot is a state of the cluster. It is comparable.
type snapshot struct {
	peers   [maxVoters]peer
	traffic traffic
	cut     uint32   // pairs of nodes that are cut off from each other
	leaders byTerm   // who has led
	led     lsn.Term // the newest term that had a valid lease
	records history
	spent   spent
}

// spent counts what a scene bounds.
type spent struct{ crashes, cuts, twins, stalls, orders, asked, losses, misses uint8 }

// peer is a voter's process, disk and links, and what its name has done.
type peer struct {
	machine   int32 // -1 while no process runs
	glue      int32
	lives     uint8 // disks that it has lost: another identity each
	disk      disk
	writing   disk         // zero for nothing
	waits     uint8        // quanta that it has been written for
	linked    uint8        // ends of links that are up
	down      uint8        // ended links that it has not noticed yet
	died      uint8        // deaths that may still be proven to it
	behind    bool         // it has missed a tick
	working   bool         // guarded work runs, until workEnd at the latest
	led       bool         // while it is paused: it led last
	workEnd   elector.Time // zero unless it works
	pausedFor elector.Time // zero unless it is paused
	votes     byTerm       // for whom it voted
}

// disk is what a disk has, or is to get: terms, and the number of a record; 0 for that before.
type disk struct {
	entered, reserved uint8
	record            uint16
}

// byTerm is a node or nobody for each term.
type byTerm uint64

const mostTerms = 16

// of returns the node of a term; -1 for nobody.
func (b byTerm) of(term lsn.Term) int { return int(b>>(4*term)&15) - 1 }

func (b *byTerm) set(term lsn.Term, node int) {
	*b = *b&^(15<<(4*term)) | byTerm(node+1)<<(4*term)
}

// traffic is what is on its way, sorted.
type traffic struct {
	n       int
	flights [mostFlights]flight
}

// flight is a parcel on its way. A link carries at most one of each kind.
type flight struct {
	lane   uint16 // its link and kind
	age    uint8
	number uint32 // of the parcel
}

const mostFlights = 64

// any reports whether a parcel on its way is one that is looked for.
func (tr *traffic) any(wanted func(number uint32) bool) bool {
	return slices.ContainsFunc(tr.flights[:tr.n], func(f flight) bool { return wanted(f.number) })
}

// pack appends all of a state, in as few bytes as is easy.
func (x *search) pack(b []byte, w *snapshot) []byte {
	order := binary.LittleEndian
	for i := range w.peers[:x.nodes] {
		p := &w.peers[i]
		b = order.AppendUint32(b, uint32(p.machine))
		b = append(b, p.disk.entered, p.disk.reserved, p.writing.entered, p.writing.reserved,
			p.waits, p.linked, p.down, p.died,
			truth(p.behind)|truth(p.working)<<1|truth(p.led)<<2|p.lives<<3)
		if x.keepsRecords() {
			b = order.AppendUint16(order.AppendUint16(b, p.disk.record), p.writing.record)
		}
		if x.pairs {
			b = order.AppendUint32(b, uint32(p.glue))
		}
		b = order.AppendUint64(b, uint64(p.votes))
		if x.guard {
			b = order.AppendUint64(b, uint64(p.workEnd))
		}
		if x.ordered > 0 {
			b = order.AppendUint64(b, uint64(p.pausedFor))
		}
	}
	b = order.AppendUint32(b, w.cut)
	b = order.AppendUint64(b, uint64(w.leaders))
	s := w.spent
	b = append(b, byte(w.led), s.crashes, s.cuts, s.twins, s.stalls, s.orders, s.asked, s.losses,
		s.misses)
	b = append(b, w.records.committed, w.records.n)
	for _, v := range w.records.written[:w.records.n] {
		b = order.AppendUint16(append(b, v.lsn, v.from), v.record)
	}
	b = append(b, byte(w.traffic.n))
	for _, f := range w.traffic.flights[:w.traffic.n] {
		b = order.AppendUint32(b, f.number<<8|uint32(f.age))
	}
	return b
}

// unpack is the opposite of pack. It returns what is left.
func (x *search) unpack(b []byte, w *snapshot) []byte {
	order := binary.LittleEndian
	next := func(n int) []byte {
		first := b[:n]
		b = b[n:]
		return first
	}
	for i := range w.peers[:x.nodes] {
		p := &w.peers[i]
		p.machine = int32(order.Uint32(next(4)))
		f := next(9)
		p.disk.entered, p.disk.reserved, p.writing.entered, p.writing.reserved = f[0], f[1], f[2], f[3]
		p.waits, p.linked, p.down, p.died = f[4], f[5], f[6], f[7]
		p.behind, p.working, p.led, p.lives = f[8]&1 != 0, f[8]&2 != 0, f[8]&4 != 0, f[8]>>3
		if x.keepsRecords() {
			p.disk.record, p.writing.record = order.Uint16(next(2)), order.Uint16(next(2))
		}
		if x.pairs {
			p.glue = int32(order.Uint32(next(4)))
		}
		p.votes = byTerm(order.Uint64(next(8)))
		if x.guard {
			p.workEnd = elector.Time(order.Uint64(next(8)))
		}
		if x.ordered > 0 {
			p.pausedFor = elector.Time(order.Uint64(next(8)))
		}
	}
	w.cut = order.Uint32(next(4))
	w.leaders = byTerm(order.Uint64(next(8)))
	f := next(11)
	w.led, w.spent = lsn.Term(f[0]), spent{f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]}
	w.records.committed, w.records.n = f[9], f[10]
	for i := range w.records.n {
		f := next(4)
		w.records.written[i] = written{f[0], f[1], order.Uint16(f[2:])}
	}
	w.traffic.n = int(next(1)[0])
	for i := range w.traffic.n {
		f := order.Uint32(next(4))
		w.traffic.flights[i] = flight{x.lanes[f>>8], uint8(f), f >> 8}
	}
	return b
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// layer is states that were reached at one depth, packed, in pieces.
type layer [][]byte

const piece = 1 << 20

func (l *layer) add(at int32, packed []byte) {
	last := len(*l) - 1
	if last < 0 || len((*l)[last])+len(packed)+4 > piece {
		*l = append(*l, make([]byte, 0, piece))
		last++
	}
	b := binary.LittleEndian.AppendUint32((*l)[last], uint32(at))
	(*l)[last] = append(b, packed...)
}

// all are the states of a layer, and where they stand in came. A layer has them once.
func (l layer) all(x *search) iter.Seq2[int32, *snapshot] {
	return func(yield func(int32, *snapshot) bool) {
		for i, b := range l {
			for len(b) > 0 {
				var w snapshot
				at := int32(binary.LittleEndian.Uint32(b))
				b = x.unpack(b[4:], &w)
				if !yield(at, &w) {
					return
				}
			}
			l[i] = nil // of no use any more
		}
	}
}
