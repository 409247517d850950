package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/repo"
)

// The input is as large as it says, and every chunk of it decodes to the same voxels.
func TestMakeInput(t *testing.T) {
	was := [2][3]int{sliceChunk, volumeChunk}
	sliceChunk, volumeChunk = [3]int{60, 20, 30}, [3]int{4, 16, 8}
	defer func() { sliceChunk, volumeChunk = was[0], was[1] }()
	dir := t.TempDir()
	if err := makeInput(t.Context(), dir, 1e-3); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"big": 1e6, "volume": 1e6, "small": bytesOf(sliceChunk)} {
		im, err := ngff.Open(t.Context(), store.Folder(filepath.Join(dir, name+".ome.zarr")), "")
		if err != nil {
			t.Fatal(err)
		}
		a := im.Levels[0].Array
		n := 4.0
		last := zarr.Region{Shape: a.Chunks()}
		for d, k := range a.Shape() {
			n *= float64(k)
			last.Start = append(last.Start, k-a.Chunks()[d])
		}
		if n < want || n > 2*want {
			t.Errorf("%s: %v bytes, want %v", name, n, want)
		}
		size := 4 * last.Shape[0] * last.Shape[1] * last.Shape[2]
		first, other := make([]byte, size), make([]byte, size)
		if err := a.Read(t.Context(), zarr.Region{Start: []int{0, 0, 0}, Shape: last.Shape}, first); err != nil {
			t.Fatal(err)
		}
		if err := a.Read(t.Context(), last, other); err != nil {
			t.Fatal(err)
		}
		if string(first) != string(other) || strings.Count(string(first), "\x00") == len(first) {
			t.Errorf("%s: the last chunk differs from the first, or is empty", name)
		}
	}
	frames, err := filepath.Glob(filepath.Join(dir, "raw/z00/tile_x*_y*_z00/image_00000.bin"))
	if err != nil || len(frames) != 9 {
		t.Fatalf("%d tiles, %v", len(frames), err)
	}
	if info, err := os.Stat(frames[8]); err != nil || info.Size() != 4*60*(20+extra)*30 {
		t.Errorf("%d bytes of frames, %v", info.Size(), err)
	}
}

// The page has a row for each record, in the order of the runs.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.json": `{"tool": "align", "started": "2026-01-01T10:00:00Z", "arguments": ["in.ome.zarr", "--report", "r.json", "--quiet"], "inputs": [{"path": "in.ome.zarr", "shape": [100, 1000, 10000], "bytes": 5}], "peak_resident_bytes": 536870912}`,
		"a.json": `{"tool": "slices", "command": "assess", "started": "2026-01-01T11:00:00Z", "arguments": ["assess", "slices"], "inputs": [{"path": "slices", "bytes": 2000000000}], "peak_resident_bytes": 1048576}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "page.md")
	t.Chdir("../..")
	if err := run(t.Context(), "", 0, dir, page); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	if want := "| align | 4.0 GB | 512 MiB | `align in.ome.zarr` |\n| slices assess | 2.0 GB | 1 MiB | `slices assess slices` |\n"; !strings.Contains(got, want) || !strings.Contains(got, "an image of <!-- input: begin -->4 GB<") || strings.Contains(got, "bias-field volume") {
		t.Errorf("no %q in:\n%s", want, got)
	}
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(`{"tool": "crop", "exit_code": 1}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "", 0, dir, page); err == nil || !strings.Contains(err.Error(), "c.json: crop ended with 1") {
		t.Errorf("a failed run: %v", err)
	}
}

// The page's table of memory for cores is what the programs say.
func TestCoresTable(t *testing.T) {
	bin, err := repo.Programs()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(repo.Path(form))
	if err != nil {
		t.Fatal(err)
	}
	table, err := coresTable(t.Context(), bin, tilings[:2], coreCounts)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table) {
		t.Errorf("%s does not have what the programs say:\n%s", form, table)
	}
}
