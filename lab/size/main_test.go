package main

import "testing"

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
