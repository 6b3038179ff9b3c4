package elector_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
)

// The language of records: "record=3.2 voters=a,b/2,c/- value=3.1:text lineage=b". A voter's data
// directory is called like the node, "b/2" is another directory under that name, and "c/-" none.
// If nothing is said of the lineage it is a's, and not shown; "founding=b" is one that is not
// founded.

// directory is the identity of the directory of that name.
func directory(name string) (id elector.Identity) {
	if !strings.HasSuffix(name, "/-") {
		sum := sha256.Sum256([]byte(name))
		copy(id[:], sum[:])
	}
	return id
}

// voter reads "b", "b/2" or "b/-".
func (s *script) voter(text string) elector.Voter {
	id, _, _ := strings.Cut(text, "/")
	v := elector.Voter{Node: elector.NodeID(id), Identity: directory(text)}
	s.texts[v.Identity.String()] = text
	return v
}

// value is the application's value of that text.
func (s *script) value(text string) elector.Value {
	v := elector.Value{Size: uint32(len(text)), Hash: sha256.Sum256([]byte(text))}
	s.texts[fmt.Sprintf("%x", v.Hash[:4])] = text
	return v
}

// recordField sets one field of a record; it reports whether there is one of that name.
func (s *script) recordField(r *elector.Record, word string) bool {
	key, val, _ := strings.Cut(word, "=")
	switch key {
	case "record":
		r.LSN = s.lsn(val)
	case "voters":
		var voters []elector.Voter
		for _, v := range strings.Split(val, ",") {
			voters = append(voters, s.voter(v))
		}
		r.Voters = elector.NewRoster(voters...)
		if r.Lineage == (elector.Identity{}) {
			r.Lineage, r.Founded = s.voter("a").Identity, true
		}
	case "lineage", "founding":
		r.Lineage, r.Founded = s.voter(val).Identity, key == "lineage"
	case "value":
		written, text, _ := strings.Cut(val, ":")
		r.Value = s.value(text)
		r.Value.LSN = s.lsn(written)
	default:
		return false
	}
	return true
}

// change reads "add d" and "remove b"; "no change" is neither.
func (s *script) change(words []string) elector.Input {
	switch words[0] {
	case "add":
		return elector.ChangeVoters{Add: s.voter(words[1])}
	case "remove":
		return elector.ChangeVoters{Remove: elector.NodeID(words[1])}
	}
	return elector.ChangeVoters{}
}

// refused says why the machine will ignore a command about its record; "" if it will not.
func (s *script) refused(in elector.Input) string {
	var err error
	switch in := in.(type) {
	case elector.Publish:
		err = s.m.Publishable()
	case elector.ChangeVoters:
		err = s.m.Changeable(in)
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf("refused: %v\n", err)
}

// recordStatus is what the machine knows of the record.
func (s *script) recordStatus() string {
	st := s.m.Record()
	var b strings.Builder
	fmt.Fprintf(&b, "accepted %s\n", st.Accepted)
	if st.Stored != st.Accepted.LSN {
		fmt.Fprintf(&b, "on disk record=%s\n", st.Stored)
	}
	fmt.Fprintf(&b, "committed %s\n", st.Committed)
	if s.m.State().Role != elector.Leader {
		return s.nameTexts(b.String())
	}
	fmt.Fprintf(&b, "in sync %t, lease follows %t, behind %v",
		st.InSync, s.m.LeaseFollows(), st.Behind)
	if st.Change != (elector.ChangeVoters{}) {
		fmt.Fprintf(&b, ", change +%s -%s", orNone(st.Change.Add.Node), orNone(st.Change.Remove))
	}
	return s.nameTexts(b.String()) + "\n"
}

var (
	valueText  = regexp.MustCompile(`(value=\S+) size=\d+ hash=([0-9a-f]{8})`)
	votersText = regexp.MustCompile(`voters=\S*`)
	voterText  = regexp.MustCompile(`([^,=]+)=([0-9a-f]{8}|-)`)
	originText = regexp.MustCompile(` (lineage|founding)=([0-9a-f]{8})`)
)

// nameTexts shows values and voters in the language of the scripts.
func (s *script) nameTexts(text string) string {
	text = valueText.ReplaceAllStringFunc(text, func(v string) string {
		m := valueText.FindStringSubmatch(v)
		return m[1] + ":" + s.texts[m[2]]
	})
	text = originText.ReplaceAllStringFunc(text, func(v string) string {
		m := originText.FindStringSubmatch(v)
		if m[1] == "lineage" && s.texts[m[2]] == "a" {
			return ""
		}
		return " " + m[1] + "=" + s.texts[m[2]]
	})
	return votersText.ReplaceAllStringFunc(text, func(v string) string {
		voters := strings.TrimPrefix(v, "voters=")
		return "voters=" + voterText.ReplaceAllStringFunc(voters, func(v string) string {
			name, id, _ := strings.Cut(v, "=")
			if id == "-" {
				return name + "/-"
			}
			return s.texts[id]
		})
	})
}
