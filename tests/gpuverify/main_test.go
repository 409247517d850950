//go:build !nocuda

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/tests/cudaemu"
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
	want := strings.NewReplacer("24\tguess", "25.5\tguess; A100 measured by make gpu-verify, commit 0123456",
		"0.08\tsomebody", "0.123\tsomebody; A100 measured by make gpu-verify, commit 0123456").Replace(table)
	for range 2 {
		if err := fillIn(file, r); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
	r.GPU.Name = "CUEMU"
	if err := fillIn(file, r); err == nil || !strings.Contains(err.Error(), "no column for CUEMU") {
		t.Error(err)
	}
	if _, err := filledIn("figure\tunit\tCUEMU\tsource\nnothing\ts\t1\tguess\n", r); err == nil {
		t.Error("a table without the figures")
	}
}
