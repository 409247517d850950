package e2e

import (
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests run the programs as links to strata. Linked by itself, a program is the same one: aip, for all of them,
// writes the same files, and each main package imports the command that has its name, and no other.
func TestSinglePrograms(t *testing.T) {
	dir := t.TempDir()
	single := filepath.Join(dir, "single", "aip")
	if out, err := exec.Command("go", "build", "-o", single, "strata/cmd/aip").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run(t, dir, "phantom", "in", "--tiles", "2,2", "--tile", "16,32,32", "-q")
	made := func(program string) map[string]string {
		c := exec.Command(program, "in/mosaic_grid_3d_z00.ome.zarr", "o/a.ome.zarr", "--png", "o/a.png", "-q", "-f")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		return outputs(t, dir, true)
	}
	linked, alone := made(filepath.Join(bin, "aip")), made(single)
	if linked["/a.png"] == "" || linked["/a.png"] != alone["/a.png"] {
		t.Errorf("the picture of aip linked by itself is another one: %d bytes, want the same %d", len(alone["/a.png"]), len(linked["/a.png"]))
	}

	list, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "strata/cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	for line := range strings.Lines(string(list)) {
		imports := strings.Fields(line)
		name, ok := strings.CutPrefix(imports[0], "strata/cmd/")
		if !ok || name == "strata" || strings.Contains(name, "/") {
			continue
		}
		programs++
		command := path.Join("strata/cmd/internal", strings.ReplaceAll(name, "-", ""))
		if imports = slices.DeleteFunc(imports[1:], func(i string) bool { return !strings.Contains(i, "/internal/") }); !slices.Equal(imports, []string{command}) {
			t.Errorf("cmd/%s imports %v, want %s", name, imports, command)
		}
	}
	if programs < 30 {
		t.Errorf("go list knows %d programs", programs)
	}
}
