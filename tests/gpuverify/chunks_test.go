//go:build !nocuda

package main

import (
	"os"
	"testing"

	"strata/pkg/gpu"
	"strata/tests/cudaemu"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// All codecs are measured, and their bytes compared.
func TestMeasureChunks(t *testing.T) {
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 64 << 20, Pinned: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := measureChunks(d, &r, 8<<20, 1); err != nil {
		t.Fatal(err)
	}
	if len(r.Chunks) != 6 || r.NVCOMP != "6.0.0" {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Chunks {
		if !c.Same || c.Error != "" || c.Decode <= 0 || (c.Encode > 0) != (c.Codec != "raw" && c.Codec != "gzip") {
			t.Errorf("%+v", c)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	r.print(os.Stdout)
}
