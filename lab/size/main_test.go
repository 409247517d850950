package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/tests/regions"
)

// Small parts are summed up, those that start slowly are not; the page has the regions.
func TestMeasured(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "strata")
	if err := os.WriteFile(binary, make([]byte, 2_000_000), 0o666); err != nil {
		t.Fatal(err)
	}
	texts, err := measured(binary, map[string]*part{
		"large": {Name: "large", Bytes: 1_000_000}, "slow": {Name: "slow", Bytes: 1000, Init: 0.1, Heap: 2000}, "a": {Name: "a", Bytes: 30_000}, "b": {Name: "b", Bytes: 40_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	filled, err := regions.Fill(string(text), texts)
	if want := "| large | 1.00 | 0.00 | 0 |\n| slow | 0.00 | 0.10 | 2 |\n| 2 smaller parts | 0.07 | | |\n| Go's tables of lines and stacks, types, strings, names | 0.93 | | |\n<!-- parts: end"; err != nil || !strings.Contains(filled, want) || !strings.Contains(filled, "2.00 MB") {
		t.Errorf("%v, no %q in\n%s", err, want, filled)
	}
}

func TestPackageOf(t *testing.T) {
	for symbol, want := range map[string]string{
		"main.main":                                                           "main",
		"strata/pkg/zarr.(*Array).Read":                                       "strata/pkg/zarr",
		"strata/pkg/filter.blendF32AVX2.abi0":                                 "strata/pkg/filter",
		"github.com/klauspost/compress/huff0.(*decoder).run":                  "github.com/klauspost/compress/huff0",
		"gopkg.in/ini%2ev1.init":                                              "gopkg.in/ini.v1",
		"go:itab.*strata/pkg/tiff.reader,io.Reader":                           "strata/pkg/tiff",
		"strata/pkg/tile.(*Loader[go.shape.float32]).View":                    "strata/pkg/tile",
		"slices.SortFunc[go.shape.[]strata/pkg/zarr.span,go.shape.struct {}]": "slices",
		"type:.eq.strata/pkg/units.Length":                                    "strata/pkg/units",
		"encoding/json.Unmarshal":                                             "encoding/json",
	} {
		if got := packageOf(symbol); got != want {
			t.Errorf("%s: %s, want %s", symbol, got, want)
		}
	}
}

func TestModuleOf(t *testing.T) {
	for pkg, want := range map[string]string{
		"strata/pkg/oct/stack":                "strata/pkg/oct",
		"github.com/klauspost/compress/huff0": "github.com/klauspost/compress",
		"gopkg.in/ini.v1":                     "gopkg.in/ini.v1",
		"encoding/json":                       "Go's runtime and standard library",
		"go:func.*":                           "tables of the compiler: strings, types, embedded files",
	} {
		if got := moduleOf(pkg); got != want {
			t.Errorf("%s: %s, want %s", pkg, got, want)
		}
	}
}
