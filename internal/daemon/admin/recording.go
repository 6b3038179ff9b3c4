package admin

import (
	"errors"
	"net/http"

	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// Recording is what a node has recorded: the newest of what happened to it, oldest first.
type Recording struct {
	Records []recording.Record `json:"records"`
	Damaged int                `json:"damaged,omitempty"` // records that cannot be read
}

// History is who led, as one node has seen it, oldest first.
type History struct {
	Leaderships []recording.Leadership `json:"leaderships"`
}

func (s *Server) getRecording(w http.ResponseWriter, _ *http.Request) {
	if records, damaged, ok := s.recorded(w, recording.Recording); ok {
		answer(w, Recording{append([]recording.Record{}, records...), damaged})
	}
}

func (s *Server) getHistory(w http.ResponseWriter, _ *http.Request) {
	if records, _, ok := s.recorded(w, recording.History); ok {
		answer(w, History{append([]recording.Leadership{}, recording.Leaderships(records)...)})
	}
}

// recorded reads one of the node's logs, or answers why it cannot.
func (s *Server) recorded(w http.ResponseWriter, name recording.Name) (
	records []recording.Record, damaged int, ok bool,
) {
	err := errors.New("this server was not told where the node's data directory is")
	if s.DataDir != "" {
		records, damaged, err = recording.Read(s.DataDir, name)
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
	}
	return records, damaged, err == nil
}
