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

// MaxElections is the most elections in one answer to GET /v1/elections.
const MaxElections = 1000

// Elections are some of the elections that are open on a node, sorted by name.
type Elections struct {
	Elections []cluster.GroupStatus `json:"elections"`
	// the name after which the next page begins; absent in the last one
	Next string `json:"next,omitempty"`
}

func (s *Server) getElections(w http.ResponseWriter, r *http.Request) {
	query, limit := r.URL.Query(), MaxElections/10
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > MaxElections {
			refuse(w, http.StatusBadRequest, fmt.Errorf(
				"limit is %.40q, but must be a whole number from 1 to %d", text, MaxElections))
			return
		}
	}
	all := s.Node.Elections(query.Get("prefix"), query.Get("after"), limit+1)
	page := Elections{Elections: all[:min(limit, len(all))]}
	if len(all) > limit {
		page.Next = all[limit-1].Group
	}
	answer(w, page)
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

// Elections returns up to limit elections of the node whose names begin with prefix and come after
// another name.
func (c *Client) Elections(ctx context.Context, prefix, after string, limit int) (
	page Elections, err error,
) {
	query := url.Values{"prefix": {prefix}, "after": {after}, "limit": {strconv.Itoa(limit)}}
	err = c.do(ctx, http.MethodGet, "/v1/elections?"+query.Encode(), nil, &page)
	return page, err
}
