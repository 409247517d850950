package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const path, version = "example.org/owner/strata", "v0.8.0"

func TestRewrite(t *testing.T) {
	for text, want := range map[string]string{
		"module strata\n\ngo 1.26\n":             "module example.org/owner/strata\n\ngo 1.26\n",
		"module strata/lab\n":                    "module example.org/owner/strata/lab\n",
		"replace strata => ../\n":                "replace example.org/owner/strata => ../\n",
		"\tstrata v0.0.0\n)":                     "\texample.org/owner/strata v0.0.0\n)",
		"import \"strata/lab/compare\"":          "import \"example.org/owner/strata/lab/compare\"",
		"import \"strata/pkg/zarr\"":             "import \"example.org/owner/strata/pkg/zarr\"",
		"-X strata/pkg/cli/release.version=1":    "-X example.org/owner/strata/pkg/cli/release.version=1",
		"strata/cmd/...":                         "example.org/owner/strata/cmd/...",
		"const module = \"strata/\"":             "const module = \"example.org/owner/strata/\"",
		"/usr/share/strata/nextflow":             "/usr/share/strata/nextflow",
		"x/strata/pkg/y my-strata/pkg":           "x/strata/pkg/y my-strata/pkg",
		"strata/sif in the user's cache, strata": "strata/sif in the user's cache, strata",
	} {
		if got := string(rewrite([]byte(text), path)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A module elsewhere, which gets ours from a proxy under its new path, builds and runs with the libraries that README
// names.
func TestImportedFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	copied := filepath.Join(t.TempDir(), "module")
	if err := rename("../..", path, copied); err != nil {
		t.Fatal(err)
	}
	if err := rename("../..", path, copied); err == nil || !strings.Contains(err.Error(), "exists: remove it") {
		t.Errorf("over a folder: %v", err)
	}
	proxy := publish(t, copied)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/user\n\ngo 1.26.0\n\nrequire " + path + " " + version + "\n",
		"main.go": fmt.Sprintf(program, path),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	downloads, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(strings.TrimSpace(string(downloads)), "cache", "download")
	c := exec.Command("go", "run", ".")
	c.Dir = dir
	c.Env = append(os.Environ(), "PWD="+dir, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOSUMDB=off",
		"GOMODCACHE="+t.TempDir(), "GOPROXY=file://"+proxy+",file://"+ours)
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "42 [4 4] 2 144 true\n") {
		t.Fatalf("go run: %v\n%s", err, out)
	}
}

// program writes an image, opens it, sums its views up, and reads a file of it.
const program = `package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"%[1]s/pkg/dtype"
	"%[1]s/pkg/filelayer"
	"%[1]s/pkg/ngff"
	"%[1]s/pkg/settings"
	"%[1]s/pkg/tile"
	"%[1]s/pkg/tile/zarrsource"
	"%[1]s/pkg/zarr"
	"%[1]s/pkg/zarr/store"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	ctx := context.Background()
	folder := store.Folder("image.ome.zarr")
	w := must(ngff.Create(ctx, folder, "", ngff.ImageSpec{Shape: []int{8, 8}, Chunks: []int{4, 4}, DType: dtype.Uint8, Levels: 1,
		Axes: []ngff.Axis{{Name: "y", Type: "space", Unit: "micrometer"}, {Name: "x", Type: "space", Unit: "micrometer"}}, Scale: []float64{1, 1}}))
	must(0, w.WriteTile(ctx, []int{0, 0}, []int{8, 8}, bytes.Repeat([]byte{42}, 64)))
	must(0, w.Close(ctx))
	image := must(ngff.Open(ctx, folder, ""))
	var a *zarr.Array = image.Levels[0].Array
	sum := 0
	views := must(tile.New[uint8](must(zarrsource.New(a)), tile.Radius(1), tile.Border(tile.Replicate)))
	defer views.Close()
	for v := range views.AllViews(ctx, 0) {
		sum += len(v.Data())
		v.Release()
	}
	pool := must(filelayer.NewPool(nil, must(settings.Environment()), nil))
	defer pool.Close()
	f := must(pool.Open("image.ome.zarr/zarr.json", os.O_RDONLY, 0))
	defer f.Close()
	voxel := make([]uint8, 1)
	must(0, zarr.ReadSlice(ctx, a, zarr.Region{Start: []int{7, 7}, Shape: []int{1, 1}}, voxel))
	fmt.Println(voxel[0], image.Levels[1].Array.Shape(), len(image.Levels), sum, must(f.Size()) > 0)
}
`

// publish makes a file proxy with the module, and returns its folder.
func publish(t *testing.T, dir string) string {
	t.Helper()
	proxy := t.TempDir()
	place := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(place, 0o755))
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	check(err)
	check(os.WriteFile(filepath.Join(place, version+".mod"), mod, 0o644))
	check(os.WriteFile(filepath.Join(place, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644))
	check(os.WriteFile(filepath.Join(place, "list"), []byte(version+"\n"), 0o644))
	f, err := os.Create(filepath.Join(place, version+".zip"))
	check(err)
	defer f.Close()
	check(zip.CreateFromDir(f, module.Version{Path: path, Version: version}, dir))
	return proxy
}
