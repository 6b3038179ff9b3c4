package netmesh

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

var release = flag.String("release", "", "record the frames of this build, under this version")

const releasedFrames = "testdata/frames"

// TestFramesOfReleases reads a frame of each kind from every released version. Each line of
// a file is the frame's kind, its bytes, and what it says. This build may know more fields.
func TestFramesOfReleases(t *testing.T) {
	if *release != "" {
		recordFrames(t, filepath.Join(releasedFrames, *release+".txt"))
	}
	files, err := filepath.Glob(releasedFrames + "/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				var want, got map[string]any
				var kind frameKind
				var frame []byte
				_, err := fmt.Sscanf(line, "%d %x", &kind, &frame)
				require.NoError(t, err)
				says := line[strings.Index(line, "{"):]
				require.NoError(t, json.Unmarshal([]byte(says), &want))
				found, body, err := newFrameReader(bytes.NewReader(frame), maxFrame).next()
				require.NoError(t, err)
				require.Equal(t, kind, found)
				require.NoError(t, json.Unmarshal(said(t, kind, body), &got))
				for field, value := range want {
					require.Equal(t, value, got[field], "%s of frame %s", field, line)
				}
			}
		})
	}
}

// said is the content of the body of a frame, as JSON.
func said(t *testing.T, kind frameKind, body []byte) []byte {
	var value any
	switch kind {
	case frameHello, frameWelcome:
		value = &hello{}
	case framePing, framePong, frameJoin:
		value = &ping{}
	case frameRefuse, frameGoodbye:
		value = &goodbye{}
	case frameFacts:
		value = &Facts{}
	}
	if kind == frameBatch {
		require.NoError(t, newDecoder().batch(body, func(group string, m elector.Message) {
			value = queuedAsJSON{group, m}
		}))
	} else {
		require.NoError(t, newDecoder().one(body, value))
	}
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}

// queuedAsJSON is queued, as package json sees it.
type queuedAsJSON struct {
	Group string
	elector.Message
}

// recordFrames writes a frame of each kind, with a value in every field.
func recordFrames(t *testing.T, file string) {
	meeting := &hello{
		Magic: magic, MinVersion: 2, MaxVersion: 3, Cluster: "shop", Node: "n1",
		Identity: bytes.Repeat([]byte{7}, 16), Boot: 3, Address: "10.0.0.1:7001", To: "n2", Dial: 4,
		Evidence: []byte("key"), Local: "10.0.0.1:7001", Remote: "10.0.0.2:5000", Process: 9, Meta: "v1",
	}
	why := &goodbye{Reason: uint8(ReasonForeignCluster), Text: "another cluster"}
	facts := &Facts{Voters: []string{"n1", "n2", "n3"}, VoterCount: 3, VoterSum: []byte("sum"),
		Settings: []string{"lease", "1.4s"}}
	enc := newEncoder()
	var text []byte
	add := func(kind frameKind, frame []byte, err error) {
		require.NoError(t, err)
		_, body, err := newFrameReader(bytes.NewReader(frame), maxFrame).next()
		require.NoError(t, err)
		text = fmt.Appendf(text, "%d %s %s\n", kind, hex.EncodeToString(frame), said(t, kind, body))
	}
	for _, f := range []struct {
		kind  frameKind
		value any
	}{
		{frameHello, meeting}, {frameWelcome, meeting}, {frameJoin, &ping{}}, {frameRefuse, why},
		{framePing, &ping{Number: 5}}, {framePong, &ping{Number: 5, Received: 6, Sent: 7, Wall: 8}},
		{frameGoodbye, why}, {frameFacts, facts},
	} {
		frame, err := enc.encode(f.kind, f.value)
		add(f.kind, frame, err)
	}
	for kind := elector.ElectionScouting; kind.Valid(); kind++ {
		_, frame, err := enc.batch([]queued{{"default", elector.Message{
			Kind: kind, Term: 300, ProposedTerm: 301, Round: 11, Priority: -2, WillVote: true,
			Cause: scouting.CauseTerm, Leader: "n1", LeaderTerm: 299, RetryAfter: time.Second,
			Sequence: 12, SentAt: 13, LSN: lsn.LSN{Term: 299, Counter: 14}, MayStand: true,
			Successor: "n2", Reach: 3,
		}}}, maxFrame)
		add(frameBatch, frame, err)
	}
	require.NoError(t, os.WriteFile(file, text, 0o600))
}
