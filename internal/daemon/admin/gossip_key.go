package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// GossipKeyRequest is the body of POST /v1/gossip-key: a step of a rotation.
type GossipKeyRequest struct {
	Step certs.GossipStep `json:"step"` // add, use or remove
	Key  string           `json:"key"`  // 32 bytes in base64, or plain
}

var errNoTLS = errors.New("this node has no keys of gossip: start it with --tls-dir")

// postGossipKey takes a step in the file of keys, and uses what is there then. No answer
// and no log line has a key.
func (s *Server) postGossipKey(w http.ResponseWriter, _ *http.Request, req GossipKeyRequest) {
	key, err := certs.ParseGossipKey(req.Key)
	if err != nil {
		err = fmt.Errorf("key: %w", err)
	}
	if err = errors.Join(req.Step.Problem(), err); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if s.TLSDir == "" {
		refuse(w, http.StatusConflict, errNoTLS)
		return
	}
	s.keys.Lock()
	defer s.keys.Unlock()
	err = s.Node.ReloadTLS() // no step from a file that is gone: it would begin with plain
	if err == nil {
		err = certs.ChangeGossipKeys(s.TLSDir, req.Step, key)
	}
	if err == nil {
		err = s.Node.ReloadTLS()
	}
	s.answerDone(w, err)
}
