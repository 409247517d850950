package docs

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestStagesLinkNoTemplates fails for a stage that imports text/template. A template calls methods by name, so that the linker keeps every
// exported method of every type in the program: with one, aip had 19 MB in place of 15.
func TestStagesLinkNoTemplates(t *testing.T) {
	for _, stage := range []string{"aip", "resample", "focal", "stitch", "crop", "stack"} {
		c := exec.Command("go", "list", "-deps", "./cmd/"+stage)
		c.Dir = root
		out, err := c.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages := strings.Fields(string(out))
		if !slices.Contains(packages, "fmt") {
			t.Fatalf("%s: %d packages without fmt", stage, len(packages))
		}
		if slices.Contains(packages, "text/template") {
			t.Errorf("%s imports text/template, directly or not: go list -deps ./cmd/%s", stage, stage)
		}
	}
}
