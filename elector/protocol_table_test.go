package elector_test

import (
	"strings"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// reaction says what an input or a message does in each role, in a few words;
// "" means that it is ignored on purpose.
type reaction struct {
	name                                 string
	dormant, follower, candidate, leader string
}

func (r reaction) in(role elector.Role) string {
	return [...]string{r.dormant, r.follower, r.candidate, r.leader}[role]
}

// messageTable is what the machine does with every message that is admitted:
// from an entitled sender, in a term that is not absurd.
var messageTable = []reaction{
	{
		"ElectionScouting", "",
		"answers whether it would vote; keeps its term",
		"answers likewise: yes to a higher term",
		"answers no: it leads",
	},
	{
		"ElectionScoutingResponse", "",
		"counts the answer to its open round; a quorum of yes makes it CANDIDATE; learns the term of a no",
		"learns the term of a no", "learns the term of a no",
	},
	{
		"ElectionProposal", "",
		"votes, unless it follows another, is promised to another, started a moment ago, or is past that term; a leap of the term is only climbed towards",
		"votes for a higher term and becomes FOLLOWER, unless the term leaps; otherwise refuses",
		"refuses, whatever the term",
	},
	{
		"ElectionProposalResponse", "",
		"learns the term of a no",
		"counts the vote of its term; a quorum makes it LEADER; noes beyond hope make it FOLLOWER",
		"takes a vote for an ack of the proposal; a no with a higher term makes it re-affirm itself",
	},
	{
		"LeaderHeartbeat", "",
		"follows, promises, acks and requests a newer record; a lower term gets InvalidHeartbeat; another leader of the same term is ignored; a leap of the term is only climbed towards",
		"becomes FOLLOWER of the sender, unless the term leaps; a lower term gets InvalidHeartbeat",
		"cedes to a higher term, unless it leaps; at its own term, reports two leaders and steps down; a lower term gets InvalidHeartbeat",
	},
	{"HeartbeatAck", "", "", "",
		"renews the lease; notes the priority, and whether the sender may stand and reaches a quorum; may speed up"},
	{"InvalidHeartbeat", "", "", "",
		"re-affirms itself in a term above a higher one that does not leap, once a heartbeat period at most"},
	{
		"LeadershipCession", "",
		"forgets the leader and the promise to it; the named successor scouts at once, the others wait",
		"will follow no heartbeat of that leadership",
		"will follow no heartbeat of that leadership",
	},
	{"NodeUnavailable", "",
		"the sender counts as not connected; gives it up, if it is the leader, unless it said so in a lower term; the promise stays", "the sender counts as not connected; its vote is waited for no more", "the sender counts as not connected: it cannot be the successor"},
	{"RecordOffer", "",
		"outside an open round, accepts a newer record, unless its term leaps; acknowledges its own",
		"", ""},
	{"RecordRequest", "", "offers its record, if that is newer and the sender may have it",
		"offers its record likewise", "offers its record likewise"},
	{"RecordAck", "", "", "",
		"commits its record, once a quorum has it; writes what was to wait for that"},
}

// inputTable is what the machine does with every other input.
var inputTable = []reaction{
	{"Start", "becomes FOLLOWER; discovers first; a voter votes for nobody for a while", "", "", ""},
	{"Carry", "", "promises its leader as by a heartbeat; leaves its silence to the pair", "", ""},
	{"Lose", "", "gives up the leader; the promise stays", "", ""},
	{"Backed", "", "", "", "renews the lease"},
	{"Covered", "", "", "", "sends heartbeats only if they tell something new"},
	{
		"Tick", "",
		"gives up a silent leader or candidate; ends a wait or a round; scouts",
		"repeats its proposal; gives up its election in the end",
		"sends the next heartbeat; steps down at the end of its lease",
	},
	{
		"LinkUp", "notes the link",
		"asks the peer too, in an open round",
		"proposes to the peer too",
		"greets the peer with a heartbeat, and with an open re-affirmation",
	},
	{
		"LinkDown", "notes the link",
		"gives the leader up, if it is the peer; the promise stays",
		"notes the link", "notes the link",
	},
	{
		"Died", "forgets a promise to the peer",
		"ends the promise to the peer and gives it up as leader or candidate",
		"forgets an old promise to the peer", "forgets an old promise to the peer",
	},
	{"Measured", "notes it", "notes it", "notes it", "notes it"},
	{"HeldUp", "", "puts off what is due for silence", "puts off the end of its election", ""},
	{"Tuned", "notes it", "notes it for its leader", "notes it", "notes it"},
	{
		"Persisted", "",
		"sends what waited for the term and still holds; acknowledges its record; having fetched it, scouts",
		"sends what waited for the term, its own proposal first",
		"sends what waited for the term; proposes its re-affirmation; commits its record",
	},
	{"Publish", "", "", "",
		"writes the value and sends it to the voters, once the record before is committed"},
	{"ChangeVoters", "", "", "",
		"notes the change, and writes the voters as soon as it may"},
	{"Confirm", "", "", "", "repeats its heartbeat to all, once for all calls of a moment"},
	{"Issued", "", "", "", "notes the newest LSN, for its heartbeats"},
	{
		"Eligible", "notes it",
		"notes it; unable, ends its open round and does not stand",
		"unable, cedes and becomes FOLLOWER",
		"unable, asks the best successor, if any, and then hands over",
	},
	{"Prepared", "notes it", "notes it", "notes it", "notes it; names its successor ahead"},
	{"Prefer", "notes it", "notes it", "notes it", "notes it"},
	{"Guard", "", "", "",
		"notes whether guarded work goes on; hands over, if it waits for its end"},
	{"Transfer", "", "", "",
		"asks the successor; on its ack, lets guarded work stop, cedes and becomes FOLLOWER"},
	{
		"Resign", "",
		"does not stand during the rest; ends its open round",
		"with a rest, cedes and becomes FOLLOWER",
		"lets guarded work stop, cedes to the best successor or nobody and becomes FOLLOWER",
	},
	{
		"Pause", "notes it",
		"does not stand, unless it led last",
		"becomes FOLLOWER, unless it led last",
		"hands over by transfer only",
	},
	{
		"Stop", "",
		"says that it leaves and becomes DORMANT",
		"cedes unless abrupt, says that it leaves and becomes DORMANT",
		"lets guarded work stop and cedes to the best successor, unless abrupt; says that it leaves and becomes DORMANT",
	},
}

// roles are the columns of the tables, in the order of a reaction.
var roles = []elector.Role{elector.Dormant, elector.Follower, elector.Candidate, elector.Leader}

// protocolTable is the text of docs/protocol_table.md.
func protocolTable() string {
	var b strings.Builder
	b.WriteString(`# Role x input

What a node does with every input, by role. A role that is not named ignores it on purpose. An
observer is a FOLLOWER that never votes, answers, acks, rejects or stands. A term leaps if it is too
far above the node's own ([protocol](protocol.md), 8.1). Tests check and write this page:
` + "`go test ./elector -run ProtocolTable -rewrite`" + `.

## Messages

A message that breaks 2.1, 2.2 or 2.3 is reported and does nothing.

`)
	writeList(&b, messageTable)
	b.WriteString("\n## Other inputs\n\n")
	writeList(&b, inputTable)
	return b.String()
}

func writeList(b *strings.Builder, rows []reaction) {
	var names []string
	for _, r := range roles {
		names = append(names, r.String())
	}
	for _, row := range rows {
		b.WriteString(testkit.Item(row.name, names,
			[]string{row.dormant, row.follower, row.candidate, row.leader}))
	}
}
