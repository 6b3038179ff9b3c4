package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh"
)

// OpenRequest is the body of POST /v1/elections.
type OpenRequest struct {
	Name string `json:"name"` // with one of the prefixes that the node is configured with
}

func (OpenRequest) path() string { return "/v1/elections" }

// CloseRequest stands for DELETE /v1/elections/{group}.
type CloseRequest struct{ Group string }

func (r CloseRequest) path() string { return "/v1/elections/" + url.PathEscape(r.Group) }

func (s *Server) postElection(w http.ResponseWriter, _ *http.Request, req OpenRequest) {
	if netmesh.NameProblem(req.Name) != "" {
		refuse(w, http.StatusBadRequest, fmt.Errorf("name is %.300q, but must have 1 to %d bytes and no "+
			"spaces", req.Name, netmesh.MaxNameLength))
		return
	}
	e, err := s.Node.Open(req.Name)
	switch {
	case errors.Is(err, cluster.ErrNotOpen):
		refuse(w, http.StatusNotFound, err)
	case err != nil:
		refuse(w, statusOf(err), err)
	default:
		answer(w, e.Status())
	}
}

// deleteElection closes an election on this node, after its guarded work has stopped. If it is not
// open, messages do not open it for a while either.
func (s *Server) deleteElection(w http.ResponseWriter, r *http.Request) {
	e, ok := s.election(w, r.PathValue("group"))
	if !ok {
		s.Node.Shut(r.PathValue("group"))
		return
	}
	if err := e.Close(r.Context()); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, e.Status())
}
