// Package nextflow checks what can be known of the workflow without running it:
// that its parameters say the same in the schema, in the configuration and in the
// documentation. run.sh here runs it.
package nextflow

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"strata/pkg/gpu/cost"
	"strata/pkg/settings"
)

const dir = "../../nextflow"

type entry struct {
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Default     any      `json:"default"`
	Enum        []any    `json:"enum"`
	Pattern     string   `json:"pattern"`
	Examples    []string `json:"examples"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
	Sets        string   `json:"sets"`   // "program --flag"
	Unless      string   `json:"unless"` // parameter that takes its place
}

func schema(t *testing.T) map[string]entry {
	t.Helper()
	var root struct {
		Defs map[string]struct {
			Properties map[string]entry `json:"properties"`
			Required   []string         `json:"required"`
		} `json:"$defs"`
		AllOf []map[string]string `json:"allOf"`
	}
	if err := json.Unmarshal(read(t, "nextflow_schema.json"), &root); err != nil {
		t.Fatal(err)
	}
	if len(root.AllOf) != len(root.Defs) {
		t.Errorf("schema: %d groups in allOf, %d defined", len(root.AllOf), len(root.Defs))
	}
	all := map[string]entry{}
	for name, group := range root.Defs {
		for p, e := range group.Properties {
			if _, twice := all[p]; twice {
				t.Errorf("schema: %s stands in two groups", p)
			}
			all[p] = e
		}
		for _, p := range group.Required {
			if _, there := group.Properties[p]; !there {
				t.Errorf("schema: %s requires %s, which it does not have", name, p)
			}
		}
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var assignment = regexp.MustCompile(`(?m)^ {4}(\w+) += (.*)$`)

// configured returns the literals of nextflow.config's params block.
func configured(t *testing.T) map[string]string {
	t.Helper()
	text := string(read(t, "nextflow.config"))
	from := strings.Index(text, "params {")
	to := strings.Index(text[max(from, 0):], "\n}")
	if from < 0 || to < 0 {
		t.Fatal("nextflow.config has no params block")
	}
	all := map[string]string{}
	for _, m := range assignment.FindAllStringSubmatch(text[from:from+to], -1) {
		all[m[1]] = strings.Trim(m[2], `'`)
	}
	return all
}

func TestParametersAgree(t *testing.T) {
	known, config := schema(t), configured(t)
	if len(known) < 20 {
		t.Fatalf("schema has only %d parameters", len(known))
	}
	for name, e := range known {
		value, there := config[name]
		want := "null"
		if e.Default != nil {
			want = fmt.Sprint(e.Default)
		}
		if !there {
			t.Errorf("%s is in the schema but not in nextflow.config", name)
		} else if value != want {
			t.Errorf("%s: default %s in nextflow.config, %s in the schema", name, value, want)
		}
	}
	for name := range config {
		if _, there := known[name]; !there {
			t.Errorf("%s is in nextflow.config but not in the schema", name)
		}
	}
}

// TestGroupsInReadme fails for a group of parameters that --help lists by a word and README.md does not, and for such a
// word of no group.
func TestGroupsInReadme(t *testing.T) {
	var root struct {
		Defs map[string]struct {
			Title string `json:"title"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(read(t, "nextflow_schema.json"), &root); err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, group := range root.Defs {
		groups[strings.ToLower(strings.FieldsFunc(group.Title, func(r rune) bool { return strings.ContainsRune(" :,", r) })[0])] = true
	}
	_, table, _ := strings.Cut(string(read(t, "README.md")), "\n| group | what it sets |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			if listed[m[1]] = true; !groups[m[1]] {
				t.Errorf("README.md: --help has no group %s", m[1])
			}
		}
	}
	for word := range groups {
		if !listed[word] {
			t.Errorf("README.md does not list the group %s", word)
		}
	}
	if len(groups) < 20 {
		t.Errorf("only %d groups were found", len(groups))
	}
}

func TestSchemaEntries(t *testing.T) {
	known := schema(t)
	for name, e := range known {
		if e.Description == "" {
			t.Errorf("%s has no description", name)
		}
		if _, there := known[e.Unless]; e.Unless != "" && !there {
			t.Errorf("%s: unless %s, which is no parameter", name, e.Unless)
		}
		switch e.Type {
		case "string", "boolean", "integer", "number":
		default:
			t.Errorf("%s: type %q is not one that the check knows", name, e.Type)
		}
		if (e.Minimum == nil) != (e.Maximum == nil) {
			t.Errorf("%s: has one of minimum and maximum, the check wants both", name)
		}
		if e.Pattern == "" {
			continue
		}
		re, err := regexp.Compile(e.Pattern)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(e.Examples) == 0 {
			t.Errorf("%s: a pattern needs an example for the message", name)
		}
		for _, x := range e.Examples {
			if !re.MatchString(x) {
				t.Errorf("%s: example %q does not match %s", name, x, e.Pattern)
			}
		}
		if s, ok := e.Default.(string); ok && !re.MatchString(s) {
			t.Errorf("%s: default %q does not match %s", name, s, e.Pattern)
		}
	}
}

// A params file that the documentation offers must name known parameters only.
func TestExampleParams(t *testing.T) {
	known := schema(t)
	files, err := filepath.Glob(filepath.Join(dir, "params", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	line := regexp.MustCompile(`(?m)^(?:# )?(\w+): `)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(b), -1) {
			if _, there := known[m[1]]; !there {
				t.Errorf("%s: %s is not a parameter", f, m[1])
			}
		}
	}
}

// One process a file, with everything that a process of ours has to have.
func TestModules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(dir, "modules", "*.nf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	process := regexp.MustCompile(`(?m)^process (\w+) \{`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found := process.FindAllStringSubmatch(string(b), -1)
		if len(found) != 1 {
			t.Errorf("%s: %d processes, should be one", f, len(found))
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(f), ".nf"); !strings.EqualFold(found[0][1], want) {
			t.Errorf("%s: process %s", f, found[0][1])
		}
		for _, part := range []string{"label '", "errorStrategy { Attempts.", "publishDir ", "versions.yml", "stub:"} {
			if !strings.Contains(string(b), part) {
				t.Errorf("%s has no %q", f, part)
			}
		}
	}
}

// The workflow is of the version of its programs, which the build takes from the
// changes.
func TestManifestVersion(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## \[?([0-9][^] \n]*)`).FindSubmatch(changes)
	manifest := regexp.MustCompile(`(?m)^ +version += '(.*)'$`).FindSubmatch(read(t, "nextflow.config"))
	if newest == nil || manifest == nil {
		t.Fatalf("newest version in CHANGELOG.md %q, version in nextflow.config %q", newest, manifest)
	}
	if string(newest[1]) != string(manifest[1]) {
		t.Errorf("nextflow.config says version %s, CHANGELOG.md %s", manifest[1], newest[1])
	}
}

// A container gets every variable by which a user sets up how files reach the GPU, and who reads a bucket.
func TestContainerVariables(t *testing.T) {
	config := "," + configured(t)["container_env"] + ","
	for _, name := range append(settings.Variables(), "CUDA_VISIBLE_DEVICES", "STRATA_LEASE_DIR", cost.Variable, "STRATA_LIBCUDA", "STRATA_LIBCUFILE", "STRATA_LIBNVCOMP",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "HTTPS_PROXY") {
		if !strings.Contains(config, ","+name+",") {
			t.Errorf("container_env does not let %s in", name)
		}
	}
}
