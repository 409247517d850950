package ngff

import (
	"fmt"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Open refuses sizes that no microscope has, of any level, and Validate reports them. Axes that are no lengths have any
// scale, and a scale without a unit is what it was.
func TestVoxelSizes(t *testing.T) {
	const third = `"type":"space","unit":"micrometer"`
	levels := func(first, second, whole string) string {
		rest := ""
		if whole != "" {
			rest = `,"coordinateTransformations":[{"type":"scale","scale":` + whole + `}]`
		}
		return fmt.Sprintf(`[{"path":"0","coordinateTransformations":[{"type":"scale","scale":%s}]},{"path":"1","coordinateTransformations":[{"type":"scale","scale":%s}]}]%s`,
			first, second, rest)
	}
	for name, c := range map[string]struct {
		axis           string // type and unit of y; x is in µm
		first, second  string
		whole          string // scale of the multiscale
		field, message string // "": it opens
	}{
		"sound":                   {third, `[1,1]`, `[2,2]`, "", "", ""},
		"limits":                  {third, `[0.001,1e6]`, `[0.001,1e6]`, "", "", ""},
		"nothing fits into it":    {third, `[1e-300,1]`, `[2e-300,2]`, "", "datasets[0]", `axis "y": voxel size 1e-300 µm: must be from 0.001 to 1000000 µm (1 nm to 1 m)`},
		"half a nanometre":        {third, `[1,0.0005]`, `[2,0.001]`, "", "datasets[0]", `axis "x": voxel size 0.0005 µm`},
		"two metres":              {third, `[2e6,1]`, `[2e6,2]`, "", "datasets[0]", `axis "y": voxel size 2e+06 µm`},
		"a level":                 {third, `[1,1]`, `[2,1e300]`, "", "datasets[1]", `axis "x": voxel size 1e+300 µm`},
		"by the multiscale":       {third, `[1,1]`, `[2,2]`, `[1,1e-9]`, "datasets[0]", `axis "x": voxel size 1e-09 µm`},
		"ångström":                {`"type":"space","unit":"angstrom"`, `[10,1]`, `[20,2]`, "", "", ""},
		"an ångström":             {`"type":"space","unit":"angstrom"`, `[1,1]`, `[20,2]`, "", "datasets[0]", `voxel size 0.0001 µm`},
		"no unit":                 {`"type":"space"`, `[1,1]`, `[2,2]`, "", "", ""},
		"pixels":                  {`"type":"space","unit":"pixel"`, `[1,1]`, `[1e5,2]`, "", "", ""},
		"millimetres, not stated": {`"type":"space"`, `[0.001,1]`, `[0.002,2]`, "", "", ""},
		"no unit, nothing fits":   {`"type":"space"`, `[1e-300,1]`, `[2e-300,2]`, "", "datasets[0]", `axis "y": voxel size 1e-297 µm: must be from 0.001 to 1000000 µm (1 nm to 1 m); its unit is missing and taken as millimeter`},
		"pixels, nothing fits":    {`"type":"space","unit":"pixel"`, `[1,1]`, `[1e300,2]`, "", "datasets[1]", `its unit is unknown ("pixel") and taken as micrometer`},
		"time":                    {`"type":"time","unit":"second"`, `[1e-300,1]`, `[1e300,2]`, "", "", ""},
		"channels":                {`"type":"channel"`, `[1e300,1]`, `[1e300,2]`, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			axes := `[{"name":"y",` + c.axis + `},{"name":"x","type":"space","unit":"micrometer"}]`
			st := node(t, 2, image04(axes, levels(c.first, c.second, c.whole), ""), map[string]zarr.Spec{"0": {Shape: []int{8, 8}}, "1": {Shape: []int{4, 4}}})
			_, err := Open(t.Context(), st, "")
			if c.message == "" && err != nil || c.message != "" && (err == nil || !strings.Contains(err.Error(), "multiscales[0]."+c.field+".coordinateTransformations: ") ||
				!strings.Contains(err.Error(), c.message)) {
				t.Errorf("Open: %v", err)
			}
			found := false
			for _, p := range Validate(t.Context(), st, "") {
				if strings.Contains(p.Message, "voxel size") {
					found = found || c.message != "" && p.Severity == Error && strings.Contains(p.Message, c.message)
					if c.message == "" {
						t.Errorf("Validate: %v", p)
					}
				}
			}
			if c.message != "" && !found {
				t.Error("Validate does not report it")
			}
		})
	}
}

// No writer makes an image that cannot be opened.
func TestVoxelSizesWritten(t *testing.T) {
	spec := ImageSpec{DType: dtype.Uint8, Shape: []int{8, 8, 8}, Chunks: []int{8, 8, 8}, Axes: SpaceAxes("zyx", "millimeter"), Scale: []float64{1, 600, 1}}
	w, err := Create(t.Context(), store.Memory(), "", spec)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	spec.Levels = 1 // of 1.2 m
	if _, err := Create(t.Context(), store.Memory(), "", spec); err == nil || !strings.Contains(err.Error(), `axis "y": voxel size 1.2e+06 µm`) {
		t.Errorf("Create: %v", err)
	}
	if _, err := CreatePlanes(t.Context(), store.Memory(), "", spec, [][]int{{8, 8, 8}, {4, 4, 4}}); err == nil || !strings.Contains(err.Error(), `axis "y": voxel size 1.2e+06 µm`) {
		t.Errorf("CreatePlanes: %v", err)
	}
}
