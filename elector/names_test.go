package elector_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

var aVoter = elector.Voter{Node: "a", Identity: elector.Identity{46}}

// TestEnumNames also checks what a value outside the enum looks like.
func TestEnumNames(t *testing.T) {
	for want, value := range map[string]fmt.Stringer{
		"DORMANT":                  elector.Dormant,
		"LEADER":                   elector.Leader,
		"ROLE(9)":                  elector.Role(9),
		"NONE":                     elector.ReasonNone,
		"LEADER_NO_HEARTBEAT":      elector.LeaderNoHeartbeat,
		"REAFFIRMED":               elector.Reaffirmed,
		"REASON(99)":               elector.Reason(99),
		"Invalid":                  elector.Kind(0),
		"ElectionScoutingResponse": elector.ElectionScoutingResponse,
		"NodeUnavailable":          elector.NodeUnavailable,
		"Kind(77)":                 elector.Kind(77),
		"eof":                      elector.EvidenceEOF,
		"local":                    elector.EvidenceLocal,
		"evidence(88)":             elector.Evidence(88),
		"none":                     elector.Proof(0),
		"refused-after-eof":        elector.ProofRefusedAfterEOF,
		"reincarnated":             elector.ProofReincarnated,
		"certified":                elector.ProofCertified,
		"proof(66)":                elector.Proof(66),
		"RESIGNED":                 elector.Resigned,
		"two-leaders":              elector.AnomalyTwoLeaders,
		"anomaly(55)":              elector.AnomalyKind(55),
		"RecordOffer":              elector.RecordOffer,
		"-":                        elector.Identity{},
		"2e000000":                 elector.Identity{46},
		"a=2e000000,b=-":           elector.NewRoster(elector.Voter{Node: "b"}, aVoter),
		"record=5.1 voters=a=2e000000": elector.Record{LSN: lsn.LSN{Term: 5, Counter: 1},
			Voters: elector.NewRoster(aVoter)},
		"1.5s": elector.Time(1_500_000_000),
	} {
		require.Equal(t, want, value.String())
	}
	require.Equal(t, "none", elector.AnomalyKind(0).String())
	require.Equal(t, "none", elector.Handover{}.Cause.String())
}

func TestMessageString(t *testing.T) {
	for want, m := range map[string]elector.Message{
		"ElectionScouting term=3 proposed=4 round=ff priority=2": {
			Kind: elector.ElectionScouting, Term: 3, ProposedTerm: 4, Round: 255, Priority: 2,
		},
		"ElectionScoutingResponse term=3 proposed=4 round=ff no cause=promise leader=b leader-term=2 retry-after=5ns": {
			Kind: elector.ElectionScoutingResponse, Term: 3, ProposedTerm: 4, Round: 255,
			Cause: scouting.CausePromise, Leader: "b", LeaderTerm: 2, RetryAfter: 5,
		},
		"ElectionProposalResponse term=4 proposed=4 sent=7ns yes": {
			Kind: elector.ElectionProposalResponse, Term: 4, ProposedTerm: 4, SentAt: 7, WillVote: true,
		},
		"HeartbeatAck term=4 lsn=4.9 seq=2 sent=7ns priority=-1 not-candidate": {
			Kind: elector.HeartbeatAck, Term: 4, LSN: lsn.LSN{Term: 4, Counter: 9}, Sequence: 2, SentAt: 7,
			Priority: -1,
		},
		"LeadershipCession term=4 successor=c": {Kind: elector.LeadershipCession, Term: 4,
			Successor: "c"},
		"RecordRequest term=4 record=3.1": {Kind: elector.RecordRequest, Term: 4,
			Record: lsn.LSN{Term: 3, Counter: 1}},
		"RecordAck term=4 record=4.1 entered=9": {Kind: elector.RecordAck, Term: 4, Entered: 9,
			Record: lsn.LSN{Term: 4, Counter: 1}},
		"LeaderHeartbeat term=4 lsn=4.0 seq=1 sent=7ns record=4.1 committed=3.2": {
			Kind: elector.LeaderHeartbeat, Term: 4, LSN: lsn.LSN{Term: 4}, Sequence: 1, SentAt: 7,
			Record: lsn.LSN{Term: 4, Counter: 1}, Committed: lsn.LSN{Term: 3, Counter: 2},
		},
		"RecordOffer term=4 record=4.1 voters=a=2e000000": {Kind: elector.RecordOffer, Term: 4,
			Offer: &elector.Record{LSN: lsn.LSN{Term: 4, Counter: 1},
				Voters: elector.NewRoster(aVoter)}},
		"NodeUnavailable term=4":  {Kind: elector.NodeUnavailable, Term: 4},
		"InvalidHeartbeat term=4": {Kind: elector.InvalidHeartbeat, Term: 4},
	} {
		require.Equal(t, want, m.String())
	}
}

// TestLegalTransitions tries every pair of roles with every reason.
func TestLegalTransitions(t *testing.T) {
	legal := 0
	for from := range elector.Role(5) {
		for to := range elector.Role(5) {
			for why := range elector.Reason(30) {
				if (elector.Transition{From: from, To: to, Reason: why}).Legal() {
					legal++
				}
			}
		}
	}
	require.Equal(t, 21, legal)
	require.True(t, elector.Transition{From: elector.Candidate, To: elector.Leader,
		Reason: elector.Elected}.Legal())
	require.False(t, elector.Transition{From: elector.Follower, To: elector.Leader,
		Reason: elector.Elected}.Legal(),
		"nobody leads without having stood")
	require.False(t, elector.Transition{From: elector.Dormant, To: elector.Leader,
		Reason: elector.Started}.Legal())
}
