package registration

import (
	"strings"
	"testing"

	"strata/pkg/filter"
)

func TestPlacement(t *testing.T) {
	const text = `{"kind": "strata placement", "fixed": "slice_z03", "moving": "slice_z04_normalize.ome.zarr",
		"transform": {"angle": -0.02, "tx": 3.5, "ty": -1, "cx": 40, "cy": 36, "fixed_z": 20, "moving_z": 4}, "displacement_um": [1, 2, 3]}`
	p, err := ReadPlacement(strings.NewReader(text), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := p.Slice(); !ok || id != 4 || p.Placed.Offsets() != (Offsets{20, 4}) || p.Placed.Rigid() != (filter.Rigid{Angle: -0.02, TX: 3.5, TY: -1, CX: 40, CY: 36}) {
		t.Errorf("%+v, slice %d", p, id)
	}
	o := p.Placed.Offsets()
	if again := PlacedBy(p.Placed.Rigid(), &o); again != p.Placed {
		t.Errorf("%+v, want %+v", again, p.Placed)
	}
	for replace, want := range map[string]string{
		"strata placement=>other":                 `p.json: kind is "other", want "strata placement", as view saves it`,
		"-0.02=>7":                                "p.json:2: an angle of 7 radians: want at most a full turn",
		"3.5=>1e300":                              "p.json:2: tx of the transform is 1e+300 pixels, want a number from -1e+12 to 1e+12",
		"36=>-1e13":                               "p.json:2: cy of the transform is -1e+13 pixels, want a number from",
		"3.5=>1e999":                              "p.json:2: transform.tx is 1e999, which is too large",
		`"fixed_z": 20=>"fixed_z": -1`:            "p.json:2: fixed_z is -1, want the number of a plane, from 0",
		`"moving_z": 4=>"moving_z": 1000000001`:   "p.json:2: moving_z is 1000000001, want the number of a plane, from 0",
		"slice_z04_normalize.ome.zarr=>../z04":    `p.json: moving is "../z04", want the name of a slice`,
		"slice_z04_normalize.ome.zarr=>last.zarr": `p.json: moving is "last.zarr", want the name of a slice with its number, such as slice_z04`,
		`"fixed_z": 20=>"fixed_z": "x"`:           "p.json:2: transform.fixed_z is a string, want a int",
		`"fixed": "slice_z03"=>`:                  "p.json:1: ",
	} {
		from, to, _ := strings.Cut(replace, "=>")
		_, err := ReadPlacement(strings.NewReader(strings.Replace(text, from, to, 1)), "p.json")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", replace, err, want)
		}
	}
}

func FuzzPlacement(f *testing.F) {
	f.Add(`{"kind": "strata placement", "moving": "z1", "transform": {"angle": 1e-3, "fixed_z": 2}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPlacement(strings.NewReader(text), "p.json")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p.json") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		var b strings.Builder
		if err := WriteTransform(&b, p.Placed.Rigid()); err != nil {
			t.Error(err)
		}
		if _, _, err := readTransform(strings.NewReader(b.String()), "t.tfm"); err != nil {
			t.Errorf("what is written cannot be read: %v", err)
		}
	})
}
