package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// pageData writes what the script of a page reads: the JSON Lines of the runs, and after
// them the messages of each run in one line. Messages are most of what a page holds, and
// as lines of their own they would be five times as long.
func pageData(w io.Writer, runs []verdict.Run) error {
	runs = slices.Clone(runs)
	var messages []object
	for i := range runs {
		h := *runs[i].History
		messages = append(messages, messageColumns(i, h.Arrows))
		h.Arrows = nil
		runs[i].History = &h
	}
	if err := JSON(w, runs); err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	for _, m := range messages {
		if err := enc.Encode(m); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}

// messageColumns are the messages of a run by column. Times are microseconds: sent is since
// the message before, and took is -1 if the message was lost. Names and texts are indices.
func messageColumns(run int, arrows []history.Arrow) object {
	nodes, kinds, texts := newDictionary(), newDictionary(), newDictionary()
	n := len(arrows)
	sent, took, from, to := make([]int64, n), make([]int64, n), make([]int, n), make([]int, n)
	kind, text := make([]int, n), make([]int, n)
	last := int64(0)
	for i, a := range arrows {
		at := a.Sent.Microseconds()
		sent[i], took[i], last = at-last, -1, at
		if a.Received != history.Forever {
			took[i] = a.Received.Microseconds() - at
		}
		from[i], to[i] = nodes.number(string(a.From)), nodes.number(string(a.To))
		kind[i], text[i] = kinds.number(a.Kind), texts.number(a.Text)
	}
	return object{"type", "messages", "run", run, "nodes", nodes.list, "kinds", kinds.list,
		"texts", texts.list, "sent_us", sent, "took_us", took, "from", from, "to", to, "kind", kind,
		"text", text}
}

// dictionary numbers texts in the order in which they first occur.
type dictionary struct {
	list  []string
	known map[string]int
}

func newDictionary() *dictionary { return &dictionary{list: []string{}, known: map[string]int{}} }

func (d *dictionary) number(text string) int {
	n, known := d.known[text]
	if !known {
		n = len(d.list)
		d.known[text] = n
		d.list = append(d.list, text)
	}
	return n
}
