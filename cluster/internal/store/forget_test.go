package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestForgottenGroupStartsAboveItsVotes(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 7, "b": 3, "c": 9}.terms()))
	s.Forget("a", "b", "never opened")
	requireForgotten(t, s, "a", 7)
	requireForgotten(t, s, "b", 7)
	requireGroup(t, s, "c", 9)
	requireForgotten(t, s, "new", 7)
	require.NoError(t, s.Persist(exact{"b": 8}.terms()))
	s.Forget("c")
	requireGroup(t, s, "b", 8)
	require.NoError(t, s.Close())
	s = opened(t, dir)
	requireForgotten(t, s, "a", 9)
	requireGroup(t, s, "b", 8)
	require.NotContains(t, string(record(t, s)), `"c"`, "it is gone from the file, too")
}

// record is what is in the file.
func record(t *testing.T, s *Store) []byte {
	t.Helper()
	st, err := s.file.read()
	require.NoError(t, err)
	text, err := st.encode()
	require.NoError(t, err)
	return text
}

func TestCrashAfterForgetForgetsNothing(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 7}.terms()))
	s.Forget("a")
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, stateFile), content, 0o600))
	requireGroup(t, opened(t, dir), "a", 7)
}

// A group that is forgotten, and opened again, has terms in the journal that are below those of the
// state file. They are in order after a crash.
func TestAForgottenGroupBeginsAnewInTheJournal(t *testing.T) {
	s := opened(t, t.TempDir())
	require.NoError(t, s.Persist(map[string]Durable{"keeps": recorded(1, 1, nil)}))
	require.NoError(t, s.Persist(exact{"a": 7}.terms()))
	require.NoError(t, s.SavePause(&Pause{})) // all that is in the state file
	s.Forget("a")
	d, err := s.Group("a")
	require.NoError(t, err)
	require.Equal(t, elector.Terms{Entered: 0, Reserved: 7}, d.Terms)
	d.Terms.Reserved = 9
	require.NoError(t, s.Persist(map[string]Durable{"a": d}))
	d, err = opened(t, copied(t, s.dir)).Group("a")
	require.NoError(t, err)
	require.Equal(t, elector.Terms{Entered: 7, Reserved: 9}, d.Terms)
}

func TestThousandsOfForgottenGroupsLeaveASmallRecord(t *testing.T) {
	s := opened(t, t.TempDir())
	for round := range lsn.Term(20) {
		terms := map[string]lsn.Term{"stays": round + 1}
		var names []string
		for i := range 500 {
			name := fmt.Sprintf("round %d, group %d", round, i)
			names, terms[name] = append(names, name), round+1
		}
		require.NoError(t, s.Persist(exact(terms).terms()))
		s.Forget(names...)
	}
	require.NoError(t, s.Persist(exact{"stays": 21}.terms()))
	require.Less(t, len(record(t, s)), 1000)
	requireGroup(t, s, "stays", 21)
	requireForgotten(t, s, "another", 20)
}

// A group that was not opened for many starts is forgotten; one that is opened now and then is
// not.
func TestGroupThatNoStartOpensIsForgotten(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"left": 7, "rare": 8, "always": 3}.terms()))
	require.NoError(t, s.Close())
	for start := range 2 * idleStarts {
		s := opened(t, dir)
		requireGroup(t, s, "always", 3)
		if start%idleStarts == idleStarts-1 {
			requireGroup(t, s, "rare", 8)
		}
		require.Equal(t, start < idleStarts, strings.Contains(string(record(t, s)), `"left":`), start)
		require.NoError(t, s.Close())
	}
	s = opened(t, dir)
	requireForgotten(t, s, "left", 7)
	requireGroup(t, s, "rare", 8)
}

// A group that is used at every start is not forgotten, although each start ends in a crash and the
// journal has its terms.
func TestAGroupThatCrashesUseIsNotForgotten(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"used": 1}.terms()))
	require.NoError(t, s.Persist(map[string]Durable{"recorded": recorded(2, 1, nil)}))
	for term := range lsn.Term(2 * idleStarts) {
		dir = copied(t, dir)
		s = opened(t, dir)
		requireGroup(t, s, "used", term+1)
		require.NoError(t, s.Persist(exact{"used": term + 2}.terms()))
	}
}

// Directories of older programs have an entry for each group that was ever opened, even if it
// never had a term.
func TestGroupsWithoutATermAreDropped(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	old := s.state.Load().clone()
	old.Groups["a"], old.Groups["b"] = 0, 4
	require.NoError(t, s.file.write(&old, nil))
	require.NoError(t, s.Close())
	s = opened(t, dir)
	require.NotContains(t, string(record(t, s)), `"a"`)
	requireGroup(t, s, "b", 4)
}

// A hundred thousand groups that reserve their first terms cost one commit, and are not in the
// file.
func TestManyGroupsReserveTheirFirstTermsTogether(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	reserved, used := map[string]elector.Terms{}, map[string]lsn.Term{}
	for i := range 4 * manyGroups {
		name := fmt.Sprintf("group %03d", i)
		reserved[name], used[name] = elector.Terms{Entered: 1, Reserved: 17}, 1
	}
	require.NoError(t, s.Persist(kept(reserved)))
	commit := s.state.Load().Commit
	require.Len(t, s.state.Load().Groups, manyGroups)
	another := map[string]elector.Terms{"another": {Entered: 3, Reserved: 17}}
	require.NoError(t, s.Persist(kept(another)))
	require.Equal(t, commit, s.state.Load().Commit, "nothing was written")
	requireForgotten(t, s, "new", 0)

	crashed := opened(t, copied(t, dir))
	for _, name := range []string{"group 255", "another", "new"} {
		requireForgotten(t, crashed, name, 17)
	}
	require.NoError(t, s.Persist(kept(map[string]elector.Terms{
		"another": {Entered: sharedTerms, Reserved: sharedTerms + 1},
	})), "more than groups have together")
	require.NoError(t, s.Persist(exact(used).terms()))
	require.NoError(t, s.GiveBack())
	require.NoError(t, s.Close())
	s = opened(t, dir)
	requireGroup(t, s, "group 255", 1)
	requireForgotten(t, s, "new", 0)
	require.Len(t, s.state.Load().Groups, 4*manyGroups+1)
}

// A group without an entry reserves terms just after another one was forgotten, which has voted in
// later terms. What that one leaves is not on disk yet, so the group's terms must be written. There
// is a journal if a group has a record.
func TestTermsAreReservedOnDiskAfterAnotherGroupWasForgotten(t *testing.T) {
	for _, journal := range []bool{false, true} {
		t.Run(fmt.Sprintf("journal: %t", journal), func(t *testing.T) {
			dir := t.TempDir()
			s := opened(t, dir)
			used := exact{}
			for i := range manyGroups + 9 {
				used[fmt.Sprintf("group %03d", i)] = 20
			}
			require.NoError(t, s.Persist(used.terms()))
			if journal {
				r := recorded(2, 1, nil)
				require.NoError(t, s.Persist(map[string]Durable{"recorded": r}))
			}
			reserve := func(name string, to elector.Terms) {
				require.NoError(t, s.Persist(kept(map[string]elector.Terms{name: to})))
				got, err := opened(t, copied(t, dir)).Group(name)
				require.NoError(t, err)
				require.GreaterOrEqual(t, got.Terms.Reserved, to.Reserved, name)
			}
			requireForgotten(t, s, "new", 0)
			s.Forget("group 000")
			reserve("new", elector.Terms{Entered: 1, Reserved: 17})
			reserve("another", elector.Terms{Entered: 21, Reserved: 37})
			s.Forget("group 001") // the file has its entry, which counts for it until then
			requireForgotten(t, s, "group 001", 20)
			reserve("group 001", elector.Terms{Entered: 21, Reserved: 37})
		})
	}
}
