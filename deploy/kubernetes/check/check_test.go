// Package check holds the manifests against Kubernetes itself: the schemas that it
// publishes, and the code by which its API server decodes, defaults and validates.
// It is a module of its own, so that nobody else carries that weight; run it with
// `go test ./...` in this directory.
package check

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
)

func TestTheAPIServerWouldTakeTheManifests(t *testing.T) {
	for name, docs := range manifests(t) {
		for i, doc := range docs {
			if err := admit(doc); err != nil {
				t.Errorf("%s, document %d: %s", name, i+1, err)
			}
		}
	}
}

// manifests are the documents of every manifest beside this module.
func manifests(t *testing.T) map[string][][]byte {
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	docs := map[string][][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		docs[filepath.Base(name)] = split(t, text)
	}
	return docs
}

func split(t *testing.T, text []byte) (docs [][]byte) {
	r := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
}

// admit does with a document what the API server does before it stores it.
func admit(doc []byte) error {
	scheme := legacyscheme.Scheme
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	versioned, _, err := strict.Decode(doc, nil, nil)
	if err != nil {
		return err
	}
	scheme.Default(versioned)
	object, err := scheme.UnsafeConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	return validate(object).ToAggregate()
}

func validate(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *core.ConfigMap:
		o.Namespace = "default"
		return corevalidation.ValidateConfigMap(o)
	case *core.Service:
		o.Namespace = "default"
		if o.Spec.ClusterIP != "" { // the server fills in the plural, at creation
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.Pod:
		o.Namespace, o.Name = "default", o.GenerateName+"x" // the server makes the name
		return corevalidation.ValidatePodCreate(o, corevalidation.PodValidationOptions{})
	case *apps.StatefulSet:
		o.Namespace = "default"
		return appsvalidation.ValidateStatefulSet(o, corevalidation.PodValidationOptions{})
	case *apps.Deployment:
		o.Namespace = "default"
		return appsvalidation.ValidateDeployment(o, corevalidation.PodValidationOptions{})
	case *policy.PodDisruptionBudget:
		o.Namespace = "default"
		return policyvalidation.ValidatePodDisruptionBudget(o,
			policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *networking.NetworkPolicy:
		o.Namespace = "default"
		return networkingvalidation.ValidateNetworkPolicy(o,
			networkingvalidation.NetworkPolicyValidationOptions{})
	}
	return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", object),
		[]string{"what this check knows"})}
}

func TestMistakesAreFound(t *testing.T) {
	good, dir := manifests(t)["bmqnode.yaml"], published(t)
	for name, c := range map[string]struct {
		from, to string
		schema   bool // the schemas alone find it
	}{
		"unknown field":     {"serviceName: bmqnode", "serviceNmae: bmqnode", true},
		"wrong type":        {"replicas: 3", "replicas: three", true},
		"nothing of a kind": {"kind: PodDisruptionBudget", "kind: PodDisruption", true},
		"no such policy":    {"podManagementPolicy: Parallel", "podManagementPolicy: Sideways", false},
		"selector and labels": {"matchLabels: {app.kubernetes.io/name: bmqnode}\n  # A volume",
			"matchLabels: {app: other}\n  # A volume", false},
		"unknown volume":    {"{name: config, mountPath", "{name: nowhere, mountPath", false},
		"port out of range": {"{path: /readyz, port: http,", "{path: /readyz, port: 70000,", false},
	} {
		for _, doc := range good {
			changed := bytes.Replace(doc, []byte(c.from), []byte(c.to), 1)
			if bytes.Equal(changed, doc) {
				continue
			}
			if admit(changed) == nil {
				t.Errorf("%s: the API server's code does not find it", name)
			}
			if c.schema && conforms(dir, changed) == nil {
				t.Errorf("%s: the schemas do not find it", name)
			}
			c.from = ""
			break
		}
		if c.from != "" {
			t.Errorf("%s: nothing was changed", name)
		}
	}
}
