package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Elections are some of the elections that are open on a node, sorted by name.
type Elections struct {
	Elections []cluster.GroupStatus `json:"elections"`
	// the name after which the next page begins; absent in the last one
	Next string `json:"next,omitempty"`
}

func (s *Server) getElections(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if !query.Has("limit") {
		query.Set("limit", strconv.Itoa(page))
	}
	sel, err := selectionIn(query)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	st := s.Node.StatusOf(sel)
	answer(w, Elections{st.Groups, st.Next})
}

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

// deleteElection closes an election on this node, after its guarded work has stopped.
func (s *Server) deleteElection(w http.ResponseWriter, r *http.Request) {
	e, ok := s.election(w, r.PathValue("group"))
	if !ok {
		return
	}
	if err := e.Close(r.Context()); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, e.Status())
}

// Elections returns a page of the elections that are open on the node: of sel, Prefix, After and
// Limit count.
func (c *Client) Elections(ctx context.Context, sel cluster.Selection) (page Elections, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/elections?"+queryOf(sel).Encode(), nil, &page)
	return page, err
}
