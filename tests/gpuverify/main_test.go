//go:build !nocuda

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/cudaemu"
	"strata/tests/regions"
	"strata/tests/repo"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// Sections add to one record: all codecs are measured and compared, and figures are there that the model knows.
func TestSections(t *testing.T) {
	s := &settings{out: filepath.Join(t.TempDir(), "r.json"), work: t.TempDir(), bytes: 4 << 20, repeat: 1, limit: 1 << 40}
	for _, name := range []string{"start", "copies", "nvcomp"} {
		if err := run(s, name, "", false); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	r, err := load(s.out)
	if err != nil {
		t.Fatal(err)
	}
	if r.NVCOMP != "6.0.0" || r.Start == nil || r.Start.Driver != "" || len(r.Copies) == 0 {
		t.Errorf("%+v", r)
	}
	seen := map[string]bool{}
	for _, c := range r.Chunks {
		seen[c.Codec] = true
		if !c.Same || c.Error != "" || c.Decode <= 0 || c.Host <= 0 || (c.Encode > 0) != (c.Codec != "raw" && c.Codec != "gzip") {
			t.Errorf("%+v", c)
		}
	}
	if len(seen) != 6 {
		t.Errorf("codecs %v", seen)
	}
	for _, name := range []string{"init", "context", "cubin", "jit", "pin", "up", "down", "launch", "wait", "allocate", "zstd_decode", "zstd_decode_stream", "zstd_encode",
		"lz4_decode", "lz4_encode_stream", "deflate_decode"} {
		if v, ok := r.Figures[name]; !ok || v < 0 {
			t.Errorf("figure %s: %v", name, v)
		}
	}
	r.print(io.Discard)
	if err := r.wrong(); err != nil {
		t.Error(err)
	}
	r.Chunks[3].Same = false
	if r.wrong() == nil {
		t.Error("chunks that are not the host's are taken for right")
	}
	if err := run(s, "tea", "", false); err == nil {
		t.Error("a section that there is not")
	}
}

// Figures go into the column of the GPU, in the table's units, and say where they are from, once.
func TestFigures(t *testing.T) {
	const table = "# figures\nfigure\tunit\tV100\tA100\tsource\nup\tGB/s\t12\t24\tguess\ninit\ts\t0.08\t0.08\tsomebody\nother\ts\t1\t2\tguess\n"
	r := &record{Commit: "0123456789"}
	r.GPU.Name = "NVIDIA A100-SXM4-80GB"
	r.figure("up", 25.5e9)
	r.figure("init", 0.1234567)
	file := filepath.Join(t.TempDir(), "figures.tsv")
	if err := os.WriteFile(file, []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("12\t24\tguess", "12.8\t25.5\tguess; A100 measured by make gpu-verify, commit 0123456; others scaled with it",
		"0.08\t0.08\tsomebody", "0.123\t0.123\tsomebody; A100 measured by make gpu-verify, commit 0123456; others scaled with it").Replace(table)
	for range 2 {
		if err := fillIn(file, r); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
	// What was measured on another GPU stays.
	r.GPU.Name = "Tesla V100-SXM2-16GB"
	r.figure("up", 13e9)
	want = strings.Replace(want, "12.8\t25.5\tguess; A100 measured by make gpu-verify, commit 0123456; others scaled with it",
		"13\t25.5\tguess; A100 measured by make gpu-verify, commit 0123456; V100 measured by make gpu-verify, commit 0123456", 1)
	want = strings.Replace(want, "0.123\t0.123\tsomebody; A100 measured by make gpu-verify, commit 0123456; others scaled with it",
		"0.123\t0.123\tsomebody; A100 measured by make gpu-verify, commit 0123456; V100 measured by make gpu-verify, commit 0123456", 1)
	if err := fillIn(file, r); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	r.GPU.Name = "CUEMU"
	if err := fillIn(file, r); err == nil || !strings.Contains(err.Error(), "no column for CUEMU") {
		t.Error(err)
	}
	if _, err := filledIn("figure\tunit\tCUEMU\tsource\nnothing\ts\t1\tguess\n", r); err == nil {
		t.Error("a table without the figures")
	}
}

// TestPage: the tables of docs/gpu-verified.md are those that the records give.
func TestPage(t *testing.T) {
	all, err := cards(repo.Path("tests", "gpuverify", "records"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(repo.Path(page))
	if err != nil {
		t.Fatal(err)
	}
	want, err := regions.Fill(string(b), tables(all))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(b) {
		t.Errorf("%s is not what the records say: go run ./tests/gpuverify -merge none", page)
	}
}

// TestMerge: results come among the records under the name of their GPU, in place of older ones and what was timed
// apart, and into the page.
func TestMerge(t *testing.T) {
	results, records := t.TempDir(), t.TempDir()
	file := filepath.Join(t.TempDir(), "page.md")
	marks := func(name string) string { return "<!-- " + name + ": begin -->\n<!-- " + name + ": end -->\n" }
	for name, text := range map[string]string{
		file: marks("machines") + marks("sizes") + marks("linumpy"),
		filepath.Join(records, "a100-stages.json"):  `[{"stage": "aip", "codec": "raw", "tag": "cpu16", "s": 9}]`,
		filepath.Join(records, "a100-linumpy.json"): `{"runs": [{"program": "x/linum_aip.py", "run": 2, "rc": 0, "wall_s": 2.4, "main_s": 0.4}, {"program": "x/linum_aip.py", "run": 1, "rc": 0, "wall_s": 3}]}`,
		filepath.Join(results, "traces.txt"):        "== aip\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := merge(results, records, file); err == nil {
		t.Error("results without a record")
	}
	r := &record{Commit: "0123456789", Driver: "12.4", Stages: []stage{{Same: true}, {}}, Kernels: []measure{{OfCopy: 0.9}, {OfCopy: 0.1}}, StartSeconds: 0.5}
	r.GPU.Name = "NVIDIA A100-SXM4-80GB"
	for _, runs := range [][]timed{nil, {{Stage: "focal", Codec: "zstd:3", Tag: "gpu4", Seconds: 1.25}, {Stage: "focal", Codec: "zstd:3", Tag: "cpu4", Seconds: 3, RC: 4}}} {
		r.Runs = runs
		if err := r.save(filepath.Join(results, "gpu-verify.json")); err != nil {
			t.Fatal(err)
		}
		if err := merge(results, records, file); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"[A100-SXM4-80GB](../tests/gpuverify/records/a100.json) | CUDA 12.4 | 01234567 |", "| 1 of 2 | 1 of 2 | 0.90 |", "| 0.50 s |", "| `linum_aip.py` | 2.40 | 0.40 |"}
		if runs == nil {
			want = append(want, "| aip, raw | 9.00 |")
		} else {
			want = append(want, "| cpu4 | gpu4 |", "| focal, zstd:3 | exit 4 | 1.25 |")
		}
		for _, w := range want {
			if !strings.Contains(string(got), w) {
				t.Errorf("no %q in\n%s", w, got)
			}
		}
		if runs != nil && strings.Contains(string(got), "aip, raw") {
			t.Error("what was timed apart before is still there")
		}
	}
	if b, err := os.ReadFile(filepath.Join(records, "a100-traces.txt")); err != nil || string(b) != "== aip\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestGrow: a mosaic of links to the chunks of a small one is an image of its size, which repeats the small one.
func TestGrow(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small.ome.zarr"), filepath.Join(dir, "large.ome.zarr")
	st := store.Folder(small)
	codecs, err := codec.FromFlag("zstd", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ngff.Create(ctx, st, "", ngff.ImageSpec{
		Shape: []int{3, 8, 12}, Chunks: []int{3, 4, 6}, DType: dtype.Uint16, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{1, 1, 1}, Levels: 2, Workers: 1, Codecs: codecs, Format: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	voxels := make([]byte, 2*3*8*12)
	for i := range voxels {
		voxels[i] = byte(i % 251)
	}
	if err := w.WriteTile(ctx, []int{0, 0, 0}, []int{3, 8, 12}, voxels); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := grow(small, large, 5); err != nil {
		t.Fatal(err)
	}
	im, err := ngff.Open(ctx, store.Folder(large), "")
	if err != nil {
		t.Fatal(err)
	}
	a := im.Levels[0].Array
	if len(im.Levels) != 1 || !slices.Equal(a.Shape(), []int{3, 20, 30}) {
		t.Fatalf("%d levels, shape %v", len(im.Levels), a.Shape())
	}
	got := make([]byte, len(voxels))
	for _, start := range [][]int{{0, 0, 0}, {0, 8, 12}} {
		if err := a.Read(ctx, zarr.Region{Start: start, Shape: []int{3, 8, 12}}, got); err != nil || !bytes.Equal(got, voxels) {
			t.Errorf("from %v: %v", start, err)
		}
	}
	if err := grow(filepath.Join(dir, "none"), large, 5); err == nil {
		t.Error("grown from nothing")
	}
}

// TestShim: the library that times the driver's calls has all that the binding binds, and lets them through.
func TestShim(t *testing.T) {
	var source bytes.Buffer
	if err := shim(&source, repo.Path("pkg", "gpu", "driver.go")); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(source.String(), "\nCALL(cu"); n < 30 {
		t.Errorf("%d calls", n)
	}
	if err := shim(io.Discard, repo.Path("go.mod")); err == nil {
		t.Error("a file that binds nothing")
	}
	if log := os.Getenv("SHIM_LOG"); log != "" { // the library is the driver's
		if list, err := gpu.Devices(); err != nil || list[0].Name != "CUEMU" {
			t.Errorf("%v, %v", list, err)
		}
		return
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shim.c"), source.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-Werror", "-Wno-builtin-declaration-mismatch", "-shared", "-fPIC", "-o", filepath.Join(dir, "shim.so"), filepath.Join(dir, "shim.c"), "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestShim$")
	c.Env = append(os.Environ(), "SHIM_LOG="+filepath.Join(dir, "log"), "REAL_LIBCUDA="+os.Getenv(cudaemu.Variable), cudaemu.Variable+"="+filepath.Join(dir, "shim.so"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "log")); err != nil {
		t.Error(err)
	}
}

// TestTimeOne: each run has its own report, though programs may write behind one that is there; a run that fails is a
// row with its exit code, and one for which there is no time has 124.
func TestTimeOne(t *testing.T) {
	s := &settings{bin: t.TempDir()}
	for name, script := range map[string]string{
		"aip":   "while [ $1 != --report ]; do shift; done; echo '{\"tool\": \"aip\", \"peak_device_bytes\": 7, \"gpu\": {\"bytes_to_device\": 5}}' >>$2",
		"focal": "echo focal: needs more >&2; exit 4",
		"crop":  "exec sleep 20",
	} {
		if err := os.WriteFile(filepath.Join(s.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	work := t.TempDir()
	v := variants("aip", "raw")[1]
	for range 2 {
		if got := s.timeOne(t.Context(), job{"aip", nil}, v, "raw", "in", work); got.Tag != "gpu16" || got.RC != 0 || got.Device != 7 || got.Up != 5 || !got.sized() {
			t.Errorf("%+v", got)
		}
	}
	if got := s.timeOne(t.Context(), job{"focal", nil}, v, "raw", "in", work); got.RC != 4 || got.Err != "focal: needs more" || got.Device != 0 {
		t.Errorf("%+v", got)
	}
	ended, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if got := s.timeOne(ended, job{"crop", nil}, v, "raw", "in", work); got.RC != 124 || got.Seconds > 10 {
		t.Errorf("%+v", got)
	}
}
