package kubelock

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServer returns the address of an API server that has config maps, one of them, for which
// nothing changes. It has no Leases.
func apiServer(t *testing.T) string {
	meta := metav1.ObjectMeta{Name: "one", Namespace: "default", UID: "1", ResourceVersion: "1"}
	kind := metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
	one := corev1.ConfigMap{TypeMeta: kind, ObjectMeta: meta}
	mark := corev1.ConfigMap{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1",
		Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, what ...any) {
		w.Header().Set("Content-Type", "application/json")
		for _, part := range what {
			_ = json.NewEncoder(w).Encode(part)
		}
	}
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}})
	})
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "configmaps", Namespaced: true,
				Kind: "ConfigMap", Verbs: []string{"get", "list", "watch"}}},
		})
	})
	mux.HandleFunc("GET /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("watch") == "" {
			answer(w, corev1.ConfigMapList{
				TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{one},
			})
			return
		}
		if r.FormValue("sendInitialEvents") == "true" {
			answer(w, event{"ADDED", one}, event{"BOOKMARK", mark})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// event is an event of a watch.
type event struct {
	Type   string           `json:"type"`
	Object corev1.ConfigMap `json:"object"`
}
