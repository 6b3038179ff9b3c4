package admin

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
)

// summary lists up to 32 elections. Of more it lists the ten that matter most, and sums up.
var summary = cluster.Selection{Few: 32, Top: 10}

// just selects the default election: for what is of the node, and not of its elections.
var just = cluster.Selection{Group: cluster.DefaultGroup}

const (
	maxPage = 1000 // elections in an answer
	page    = 100  // if the request does not say how many
	maxTop  = 100
)

// selectionIn reads from a query which elections an answer is to list: one, a page of them by name
// or, without a limit and a name to begin after, a summary.
func selectionIn(q url.Values) (cluster.Selection, error) {
	sel := cluster.Selection{
		Group: q.Get("group"), Prefix: q.Get("prefix"), After: q.Get("after"), Few: summary.Few,
	}
	var err error
	number := func(name string, most, otherwise int) int {
		if !q.Has(name) || err != nil {
			return otherwise
		}
		n, wrong := strconv.Atoi(q.Get(name))
		if wrong != nil || n < 1 || n > most {
			err = fmt.Errorf("%s is %q, but must be a number from 1 to %d", name, q.Get(name), most)
		}
		return n
	}
	sel.Top = number("top", maxTop, summary.Top)
	if q.Has("after") || q.Has("limit") {
		sel.Few, sel.Limit = 0, number("limit", maxPage, page)
	}
	if others := []string{"prefix", "after", "limit", "top"}; q.Has("group") &&
		slices.ContainsFunc(others, q.Has) {
		err = fmt.Errorf("group names one election: leave %s out", strings.Join(others, ", "))
	}
	return sel, err
}

// CheckSelection returns what is wrong with a selection that a node is to be asked for.
func CheckSelection(sel cluster.Selection) error {
	_, err := selectionIn(queryOf(sel))
	return err
}

// queryOf is the query that selectionIn reads; it is empty for a summary.
func queryOf(sel cluster.Selection) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"group": sel.Group, "prefix": sel.Prefix, "after": sel.After,
		"limit": strconv.Itoa(sel.Limit), "top": strconv.Itoa(sel.Top),
	} {
		if value != "" && value != "0" {
			q.Set(name, value)
		}
	}
	return q
}

// eventKinds are those of events by which a stream may be filtered.
var eventKinds = []string{"transition", "record", "succession", "voters", "probe"}

// A filter says which events a stream has. The zero value lets all pass.
type filter struct {
	group, prefix string
	kinds         []string
}

func filterIn(q url.Values) (f filter, err error) {
	f = filter{group: q.Get("group"), prefix: q.Get("prefix"), kinds: q["kind"]}
	for _, kind := range f.kinds {
		if !slices.Contains(eventKinds, kind) {
			err = fmt.Errorf("kind is %q, but must be one of %s", kind, strings.Join(eventKinds, ", "))
		}
	}
	if f.group != "" && f.prefix != "" {
		err = errors.New("group names one election: leave prefix out")
	}
	return f, err
}

// passes reports whether a stream has events of that kind about that election, "" if they are about
// the node. A stream of one election has its transitions one by one, and no masses.
func (f *filter) passes(kind, group string) bool {
	if kind == masses {
		kind = "transition"
		if f.group != "" {
			return false
		}
	}
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, kind)) &&
		(group == "" || (f.group == "" || group == f.group) && strings.HasPrefix(group, f.prefix))
}

// selection is of what a stream's status tells.
func (f *filter) selection() cluster.Selection {
	sel := summary
	sel.Group, sel.Prefix = f.group, f.prefix
	return sel
}
