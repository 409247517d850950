package ngff

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/corpus"
)

func TestMicrometres(t *testing.T) {
	for _, c := range []struct {
		unit string
		want float64
		name string
	}{
		{"micrometer", 1, "micrometer"}, {"millimeter", 1000, "millimeter"}, {"nanometer", 1e-3, "nanometer"},
		{"meter", 1e6, "meter"}, {"centimeter", 1e4, "centimeter"}, {"angstrom", 1e-4, "angstrom"}, {"inch", 25400, "inch"},
		{"um", 1, "micrometer"}, {"\u00b5m", 1, "micrometer"}, {"\u03bcm", 1, "micrometer"}, {"Micrometres", 1, "micrometer"},
		{"microns", 1, "micrometer"}, {"mm", 1000, "millimeter"}, {"millimetre", 1000, "millimeter"}, {"m", 1e6, "meter"},
	} {
		got, name, ok := Micrometres(c.unit)
		if !ok || got != c.want || name != c.name {
			t.Errorf("%q: %v, %q, %v", c.unit, got, name, ok)
		}
	}
	for _, bad := range []string{"", "pixel", "second", "s", "meters per second"} {
		if f, _, ok := Micrometres(bad); ok {
			t.Errorf("%q is %v micrometres", bad, f)
		}
	}
}

func TestTransformThen(t *testing.T) {
	a := Transform{Scale: []float64{2, 3}, Translation: []float64{1, 1}}
	got := a.then(Transform{Scale: []float64{10, 10}, Translation: []float64{5, -5}})
	if !slices.Equal(got.Scale, []float64{20, 30}) || !slices.Equal(got.Translation, []float64{15, 5}) {
		t.Errorf("%+v", got)
	}
	if got := a.then(Transform{}); !slices.Equal(got.Scale, a.Scale) || !slices.Equal(got.Translation, a.Translation) {
		t.Errorf("%+v", got)
	}
	if got := (Transform{Scale: []float64{2, 2}}).then(Transform{Translation: []float64{1, 2}}); !slices.Equal(got.Translation, []float64{1, 2}) {
		t.Errorf("%+v", got)
	}
}

// node makes a group with one or more arrays and attributes as given.
func node(t testing.TB, format int, attrs string, arrays map[string]zarr.Spec) store.Store {
	t.Helper()
	st := store.Memory()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(attrs), &raw); err != nil {
		t.Fatal(err)
	}
	m := rawAttributes(raw)
	if format == 3 {
		m = map[string]any{"ome": m}
	}
	if _, err := zarr.CreateGroup(t.Context(), st, "", format, m); err != nil {
		t.Fatal(err)
	}
	for path, s := range arrays {
		s.Format = format
		if s.Chunks == nil {
			s.Chunks = s.Shape
		}
		if s.DType == dtype.Invalid {
			s.DType = dtype.Uint8
		}
		if s.Separator == "" {
			s.Separator = "/"
		}
		if _, err := zarr.CreateArray(t.Context(), st, path, s); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

const yx = `[{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space","unit":"micrometer"}]`

func image04(axes, datasets, rest string) string {
	return `{"multiscales":[{"version":"0.4","axes":` + axes + `,"datasets":` + datasets + rest + `}]}`
}

const two = `[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1,1]}]},{"path":"1","coordinateTransformations":[{"type":"scale","scale":[2,2]}]}]`

func scaled(transforms string) string {
	return `[{"path":"0","coordinateTransformations":` + transforms + `}]`
}

// What is wrong is named by its field, by Validate always and by Open when it
// cannot go on.
func TestProblems(t *testing.T) {
	flat := map[string]zarr.Spec{"0": {Shape: []int{8, 8}}, "1": {Shape: []int{4, 4}}}
	for _, c := range []struct {
		name, attrs string
		arrays      map[string]zarr.Spec
		field       string
		severity    Severity
		message     string
		opens       bool
	}{
		{"sound", image04(yx, two, ""), flat, "", Error, "", true},
		{"one axis", image04(`[{"name":"x","type":"space"}]`, two, ""), flat, "multiscales[0].axes", Error, "1 axes (must be 2 to 5)", false},
		{"six axes", image04(`[`+strings.Repeat(`{"name":"x"},`, 5)+`{"name":"y"}]`, two, ""), flat, "multiscales[0].axes", Error, "6 axes", false},
		{"axis names", image04(strings.Replace(yx, `"y"`, `"x"`, 1), two, ""), flat, "multiscales[0].axes[1].name", Error, "names must differ", false},
		{"axis without name", image04(`[{"type":"space"},{"name":"x","type":"space"}]`, two, ""), flat, "multiscales[0].axes[0].name", Error, "missing", false},
		{"axis without type", image04(`[{"name":"y"},{"name":"x"}]`, two, ""), flat, "multiscales[0].axes[0].type", Warning, "taken as space", true},
		{"axis order", image04(`[{"name":"y","type":"space","unit":"micrometer"},{"name":"c","type":"channel"}]`, two, ""), flat, "multiscales[0].axes[1].type", Error, "channel after space", true},
		{"time after channel", image04(`[{"name":"c","type":"channel"},{"name":"t","type":"time"}]`, two, ""), flat, "multiscales[0].axes[1].type", Error, "time after channel", true},
		{"two channels", image04(`[{"name":"c","type":"channel"},{"name":"k","type":"channel"}]`, two, ""), flat, "multiscales[0].axes[1].type", Error, "a second axis of type", true},
		{"space axes", image04(`[{"name":"c","type":"channel"},{"name":"x","type":"space","unit":"micrometer"}]`, two, ""), flat, "multiscales[0].axes", Error, "1 space axes", true},
		{"unit unknown", image04(strings.ReplaceAll(yx, "micrometer", "pixel"), two, ""), flat, "multiscales[0].axes[0].unit", Warning, "not a space unit", true},
		{"unit alias", image04(strings.ReplaceAll(yx, "micrometer", "um"), two, ""), flat, "multiscales[0].axes[0].unit", Warning, `"micrometer"`, true},
		{"datasets empty", image04(yx, `[]`, ""), flat, "multiscales[0].datasets", Error, "empty", false},
		{"datasets missing", image04(yx, `null`, ""), flat, "multiscales[0].datasets", Error, "missing", false},
		{"path empty", image04(yx, strings.Replace(two, `"0"`, `""`, 1), ""), flat, "multiscales[0].datasets[0].path", Error, "empty path", false},
		{"path dotted", image04(yx, strings.Replace(two, `"1"`, `"a/../1"`, 1), ""), flat, "multiscales[0].datasets[1].path", Error, "stay inside", false},
		{"path to nothing", image04(yx, strings.Replace(two, `"1"`, `"7"`, 1), ""), flat, "multiscales[0].datasets[1].path", Error, "no such array", false},
		{"no transforms", image04(yx, `[{"path":"0"}]`, ""), flat, "multiscales[0].datasets[0].coordinateTransformations", Error, "missing", false},
		{"empty transforms", image04(yx, scaled(`[]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations", Error, "empty", true},
		{"no scale", image04(yx, scaled(`[{"type":"translation","translation":[1,1]}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations", Error, "no scale", true},
		{"scale second", image04(yx, scaled(`[{"type":"translation","translation":[1,1]},{"type":"scale","scale":[1,1]}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations[1].type", Error, "scale must come first", true},
		{"two scales", image04(yx, scaled(`[{"type":"scale","scale":[1,1]},{"type":"scale","scale":[1,1]}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations[1].type", Error, "second scale", false},
		{"scale negative", image04(yx, scaled(`[{"type":"scale","scale":[1,-1]}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations[0].scale[1]", Error, "positive", false},
		{"scale too large", image04(yx, scaled(`[{"type":"scale","scale":[1,1e999]}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations[0].scale[1]", Error, "range", false},
		{"translation length", image04(yx, scaled(`[{"type":"scale","scale":[1,1]},{"type":"translation","translation":[1]}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations[1].translation", Error, "1 numbers for 2 axes", false},
		{"affine", image04(yx, scaled(`[{"type":"affine"}]`), ""), flat, "multiscales[0].datasets[0].coordinateTransformations[0].type", Error, `"affine"`, false},
		{"multiscale scale", image04(yx, two, `,"coordinateTransformations":[{"type":"scale","scale":[0,1]}]`), flat, "multiscales[0].coordinateTransformations[0].scale[0]", Error, "positive", false},
		{"product of scales", image04(yx, scaled(`[{"type":"scale","scale":[1e200,1]}]`), `,"coordinateTransformations":[{"type":"scale","scale":[1e200,1]}]`), flat, "multiscales[0].datasets[0].coordinateTransformations", Error, "positive", false},
		{"two multiscales", `{"multiscales":[{"version":"0.4","axes":` + yx + `,"datasets":` + two + `},{"version":"0.4"}]}`, flat, "multiscales", Warning, "the first is used", true},
		{"no version", `{"multiscales":[{"axes":` + yx + `,"datasets":` + two + `}]}`, flat, "multiscales[0].version", Warning, "read as 0.4", true},
		{"rank", image04(yx, two, ""), map[string]zarr.Spec{"0": {Shape: []int{8, 8, 8}}, "1": {Shape: []int{4, 4}}}, "multiscales[0].datasets[0]", Error, "3 dimensions for 2 axes", false},
		{"order of levels", image04(yx, two, ""), map[string]zarr.Spec{"0": {Shape: []int{4, 4}}, "1": {Shape: []int{8, 8}}}, "multiscales[0].datasets[1].path", Error, "largest to smallest", true},
		{"types", image04(yx, two, ""), map[string]zarr.Spec{"0": {Shape: []int{8, 8}}, "1": {Shape: []int{4, 4}, DType: dtype.Float32}}, "multiscales[0].datasets[1]", Error, "float32", true},
		{"scale against shape", image04(yx, two, ""), map[string]zarr.Spec{"0": {Shape: []int{80, 80}}, "1": {Shape: []int{10, 40}}}, "multiscales[0].datasets[1].coordinateTransformations", Error, "axis \"y\"", true},
		{"separator", image04(yx, two, ""), map[string]zarr.Spec{"0": {Shape: []int{8, 8}, Separator: "."}, "1": {Shape: []int{4, 4}}}, "multiscales[0].datasets[0]", Error, "dimension_separator", true},
		{"channels", `{"omero":{"channels":[{"color":"FF0000","window":{"min":0,"max":1,"start":0,"end":1}},{"color":"00FF00","window":{"min":0,"max":1,"start":0,"end":1}}]},` + image04(yx, two, "")[1:], flat, "omero.channels", Error, "2 channels", true},
		{"colour", `{"omero":{"channels":[{"color":"red","window":{"min":0,"max":1,"start":0,"end":1}}]},` + image04(yx, two, "")[1:], flat, "omero.channels[0].color", Error, "hexadecimal", true},
		{"window", `{"omero":{"channels":[{"color":"FF0000","window":{"min":0,"max":1,"start":"low","end":1}}]},` + image04(yx, two, "")[1:], flat, "omero.channels[0].window.start", Error, "must be a number", true},
		{"window order", `{"omero":{"channels":[{"color":"FF0000","window":{"min":3,"max":1,"start":0,"end":1}}]},` + image04(yx, two, "")[1:], flat, "omero.channels[0].window", Error, "above max", true},
		{"label of floats", `{"image-label":{},` + image04(yx, two, "")[1:], map[string]zarr.Spec{"0": {Shape: []int{8, 8}, DType: dtype.Float32}, "1": {Shape: []int{4, 4}, DType: dtype.Float32}}, "image-label", Error, "must be integers", true},
		{"label colour", `{"image-label":{"colors":[{"label-value":1,"rgba":[0,0,256,0]}]},` + image04(yx, two, "")[1:], flat, "image-label.colors[0].rgba[2]", Error, "0 to 255", true},
		{"label twice", `{"image-label":{"colors":[{"label-value":1},{"label-value":1}]},` + image04(yx, two, "")[1:], flat, "image-label.colors[1].label-value", Error, "second time", true},
		{"not a list", `{"multiscales":{}}`, flat, "multiscales", Error, "an object (must be a list)", false},
		{"nothing", `{}`, flat, "", Error, "no OME-Zarr metadata", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := node(t, 2, c.attrs, c.arrays)
			_, err := Open(t.Context(), st, "")
			if (err == nil) != c.opens {
				t.Errorf("Open: %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.field) || !strings.HasPrefix(err.Error(), st.Location(""))) {
				t.Errorf("Open: %v: does not name %s", err, c.field)
			}
			problems := Validate(t.Context(), st, "")
			if c.message == "" {
				if len(problems) > 0 {
					t.Errorf("problems: %v", problems)
				}
				return
			}
			for _, p := range problems {
				if p.Field == c.field && p.Severity == c.severity && strings.Contains(p.Message, c.message) && p.Path == st.Location("") {
					return
				}
			}
			t.Errorf("no %s about %q with %q in %v", c.severity, c.field, c.message, problems)
		})
	}
}

// The same on Zarr v3, where names are written with "ome.", and what is new there.
func TestProblems05(t *testing.T) {
	attrs := `{"version":"0.5","multiscales":[{"axes":` + yx + `,"datasets":` + two + `}]}`
	good := map[string]zarr.Spec{"0": {Shape: []int{8, 8}, DimensionNames: []string{"y", "x"}}, "1": {Shape: []int{4, 4}, DimensionNames: []string{"y", "x"}}}
	if p := Validate(t.Context(), node(t, 3, attrs, good), ""); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	for _, c := range []struct {
		name, attrs string
		names       []string
		field       string
	}{
		{"names differ", attrs, []string{"x", "y"}, "ome.multiscales[0].datasets[0]"},
		{"no names", attrs, nil, "ome.multiscales[0].datasets[0]"},
		{"version", strings.Replace(attrs, "0.5", "0.4", 1), []string{"y", "x"}, "ome.version"},
		{"no version", strings.Replace(attrs, `"version":"0.5",`, "", 1), []string{"y", "x"}, "ome.version"},
	} {
		st := node(t, 3, c.attrs, map[string]zarr.Spec{"0": {Shape: []int{8, 8}, DimensionNames: c.names}, "1": good["1"]})
		if !slices.ContainsFunc(Validate(t.Context(), st, ""), func(p Problem) bool { return p.Field == c.field }) {
			t.Errorf("%s: nothing about %s", c.name, c.field)
		}
		if _, err := Open(t.Context(), st, ""); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Versions before 0.4 have no units and no scales: they open, with warnings.
func TestOldVersions(t *testing.T) {
	old := map[string]zarr.Spec{"0": {Shape: []int{1, 1, 2, 8, 8}}}
	for _, attrs := range []string{
		`{"multiscales":[{"version":"0.1","datasets":[{"path":"0"}]}]}`,
		`{"multiscales":[{"version":"0.3","axes":["t","c","z","y","x"],"datasets":[{"path":"0"}]}]}`,
	} {
		im, err := Open(t.Context(), node(t, 2, attrs, old), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(im.Axes) != 5 || im.Axes[1].Type != TypeChannel || !slices.Equal(im.VoxelSize, []float64{1, 1, 1, 1, 1}) {
			t.Errorf("%+v", im)
		}
		if !slices.ContainsFunc(im.Warnings, func(s string) bool { return strings.Contains(s, "states no voxel size") }) {
			t.Errorf("warnings %q", im.Warnings)
		}
	}
}

// The voxel size is that of level 0 with all transformations, in micrometres.
func TestVoxelSize(t *testing.T) {
	for _, c := range []struct {
		units [2]string
		scale string
		want  []float64
		warns int
	}{
		{[2]string{"micrometer", "nanometer"}, "[3.5,500]", []float64{35, 5}, 0},
		{[2]string{"", ""}, "[0.01,3]", []float64{100, 30000}, 1},
		{[2]string{"", ""}, "[1,0.5]", []float64{10, 5}, 1},
		{[2]string{"parsec", "um"}, "[1,0.5]", []float64{10, 5}, 2},
		{[2]string{"um", "um"}, "[1,0.5]", []float64{10, 5}, 1}, // not of each axis
		{[2]string{"um", "mm"}, "[1,0.5]", []float64{10, 5000}, 2},
	} {
		axes := `[{"name":"y","type":"space","unit":"` + c.units[0] + `"},{"name":"x","type":"space","unit":"` + c.units[1] + `"}]`
		st := node(t, 2, image04(axes, scaled(`[{"type":"scale","scale":`+c.scale+`}]`), `,"coordinateTransformations":[{"type":"scale","scale":[10,10]}]`), map[string]zarr.Spec{"0": {Shape: []int{8, 8}}})
		im, err := Open(t.Context(), st, "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(im.VoxelSize, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*b }) || len(im.Warnings) != c.warns {
			t.Errorf("%q, scale %s: %v, want %v; warnings %q", c.units, c.scale, im.VoxelSize, c.want, im.Warnings)
		}
	}
}

// Plates: what a well says must fit the plate.
func TestPlateProblems(t *testing.T) {
	plate := `{"plate":{"version":"0.4","rows":[{"name":"A"}],"columns":[{"name":"1"},{"name":"2"}],"wells":[{"path":"A/2","rowIndex":0,"columnIndex":1}],"field_count":1}}`
	for _, c := range []struct{ name, attrs, field string }{
		{"index", strings.Replace(plate, `"columnIndex":1`, `"columnIndex":0`, 1), "plate.wells[0].columnIndex"},
		{"range", strings.Replace(plate, `"columnIndex":1`, `"columnIndex":7`, 1), "plate.wells[0].columnIndex"},
		{"no index", strings.Replace(plate, `,"columnIndex":1`, ``, 1), "plate.wells[0].columnIndex"},
		{"path", strings.Replace(plate, `"A/2"`, `"A2"`, 1), "plate.wells[0].path"},
		{"path out", strings.Replace(plate, `"A/2"`, `"../2"`, 1), "plate.wells[0].path"},
		{"row name", strings.Replace(plate, `{"name":"A"}`, `{"name":"A-"}`, 1), "plate.rows[0].name"},
		{"columns", strings.Replace(plate, `"2"`, `"1"`, 1), "plate.columns[1].name"},
		{"fields", strings.Replace(plate, `"field_count":1`, `"field_count":0`, 1), "plate.field_count"},
		{"no wells", strings.Replace(plate, `"wells"`, `"walls"`, 1), "plate.wells"},
		{"acquisitions", strings.Replace(plate, `"field_count":1`, `"acquisitions":[{"id":1},{"id":1}]`, 1), "plate.acquisitions[1].id"},
	} {
		st := node(t, 2, c.attrs, nil)
		if !slices.ContainsFunc(Validate(t.Context(), st, ""), func(p Problem) bool { return p.Field == c.field && p.Severity == Error }) {
			t.Errorf("%s: nothing about %s: %v", c.name, c.field, Validate(t.Context(), st, ""))
		}
	}
}

// FuzzMetadata: whatever the attributes say, reading ends with metadata or
// findings, and what passes is sound enough to compute with.
func FuzzMetadata(f *testing.F) {
	for _, c := range corpus.Cases(f) {
		if !strings.HasPrefix(c.Kind, "ome-") {
			continue
		}
		g, err := zarr.OpenGroup(f.Context(), store.Folder(c.Dir(f)), "")
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(g.Attributes())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, c.Format)
	}
	f.Fuzz(func(t *testing.T, b []byte, format int) {
		var attrs map[string]json.RawMessage
		if json.Unmarshal(b, &attrs) != nil {
			return
		}
		var found findings
		m := parse(attrs, 2+format&1, &found)
		for _, p := range found.list {
			if p.Message == "" || strings.Contains(p.Message, "%!") {
				t.Fatalf("finding %+v", p)
			}
		}
		if found.firstFatal() != nil || len(m.Multiscales) == 0 {
			return
		}
		ms := m.Multiscales[0]
		if n := len(ms.Axes); n < 2 || n > 5 || len(ms.Datasets) == 0 {
			t.Fatalf("%+v", ms)
		}
		for _, d := range ms.Datasets {
			if checkInside(d.Path) != nil || len(d.Transform.Scale) != len(ms.Axes) {
				t.Fatalf("%+v", d)
			}
			for _, s := range d.Transform.Scale {
				if !finitePositive(s) {
					t.Fatalf("%+v", d)
				}
			}
		}
	})
}
