package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// A probe that a hanging node answered would keep it alive.
func TestANodeThatHangsIsNotHealthy(t *testing.T) {
	clustertest.Run(t, []cluster.NodeID{"a"}, func(t *testing.T, c *clustertest.Cluster) {
		s := &Server{Config: Config{Node: c.Node("a")}}
		probe := func() (*httptest.ResponseRecorder, chan struct{}) {
			answer, answered := httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(answered)
				s.getHealth(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			}()
			return answer, answered
		}
		c.Pause("a")
		answer, answered := probe()
		synctest.Wait()
		select {
		case <-answered:
			require.Fail(t, "the driver cannot have been asked")
		default:
		}
		c.Resume("a")
		<-answered
		require.Equal(t, http.StatusOK, answer.Code)

		c.Stop("a")
		answer, answered = probe()
		<-answered
		require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	})
}
