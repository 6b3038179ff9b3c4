package check

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

func TestTheManifestsSatisfyThePublishedSchemas(t *testing.T) {
	dir := published(t)
	for name, docs := range manifests(t) {
		for i, doc := range docs {
			if err := conforms(dir, doc); err != nil {
				t.Errorf("%s, document %d: %s", name, i+1, err)
			}
		}
	}
}

// published is the directory of the OpenAPI documents in the module of Kubernetes.
func published(t *testing.T) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "api", "openapi-spec", "v3")
}

// conforms checks a document against the schema of its kind. What the schema does
// not name is an error too.
func conforms(dir string, doc []byte) error {
	var object struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(doc, &object); err != nil {
		return err
	}
	group, version, grouped := strings.Cut(object.APIVersion, "/")
	file := fmt.Sprintf("apis__%s__%s_openapi.json", group, version)
	if !grouped {
		file, version = fmt.Sprintf("api__%s_openapi.json", group), group
	}
	api, err := readAPI(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	name := schemaOf(api, object.Kind, "."+version+"."+object.Kind)
	if name == "" {
		return fmt.Errorf("%s has no schema of a %s", file, object.Kind)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("k8s:///"+file, api); err != nil {
		return err
	}
	schema, err := c.Compile("k8s:///" + file + "#/components/schemas/" + name)
	if err != nil {
		return err
	}
	return validateYAML(schema, doc)
}

func validateYAML(schema *jsonschema.Schema, doc []byte) error {
	text, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// readAPI reads an OpenAPI document and closes its objects.
func readAPI(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var api map[string]any
	if err := json.Unmarshal(text, &api); err != nil {
		return nil, err
	}
	for _, s := range schemas(api) {
		if object := s.(map[string]any); object["properties"] != nil &&
			object["additionalProperties"] == nil {
			object["additionalProperties"] = false
		}
	}
	return api, nil
}

func schemas(api map[string]any) map[string]any {
	return api["components"].(map[string]any)["schemas"].(map[string]any)
}

// schemaOf finds the schema of a kind: other groups may have one of the same name.
func schemaOf(api map[string]any, kind, suffix string) string {
	for name, s := range schemas(api) {
		kinds, _ := s.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			if k.(map[string]any)["kind"] == kind && strings.HasSuffix(name, suffix) {
				return name
			}
		}
	}
	return ""
}
