package ngff

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/corpus"
)

func TestMain(m *testing.M) { corpus.Main(m) }

// Every accepted image gives the axes, levels, transforms, settings and labels
// of the manifest, and every value; every other is refused with one line that
// names the group and the field.
func TestCorpus(t *testing.T) {
	images, plates, refused := 0, 0, 0
	for _, c := range corpus.Cases(t) {
		if !strings.HasPrefix(c.Kind, "ome-") {
			continue
		}
		t.Run(strings.TrimPrefix(c.ID, "ome/"), func(t *testing.T) {
			st := store.Folder(c.Dir(t))
			switch {
			case c.Must == "reject" || c.Must == "either":
				refused++
				checkRefused(t, c, st)
			case c.Kind == "ome-plate":
				plates++
				checkPlate(t, c, st)
			default:
				images++
				checkImage(t, c, st)
			}
		})
	}
	if images != 16 || plates != 2 || refused != 18 {
		t.Errorf("%d images, %d plates, %d refused", images, plates, refused)
	}
}

func checkRefused(t *testing.T, c corpus.Case, st store.Store) {
	_, err := Open(t.Context(), st, "")
	if err == nil {
		t.Fatalf("opened; %s", c.Behaviour)
	}
	var fe *zarr.FormatError
	if !errors.As(err, &fe) || fe.Path != st.Location("") || !strings.Contains(fe.Field, "multiscales") && !strings.Contains(fe.Field, "version") {
		t.Errorf("%v: must name the group and the field", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q: more than one line", err)
	}
	if strings.HasSuffix(c.ID, "unknown_version") && !strings.Contains(err.Error(), `unknown NGFF version "9.9"`) {
		t.Errorf("%v: must say that the version is unknown", err)
	}
	for _, p := range Validate(t.Context(), st, "") {
		if p.Severity == Error && p.Field == fe.Field {
			return
		}
	}
	t.Errorf("Validate does not report %q", fe.Field)
}

// statedUnits reads the axes' units from the file, on its own way: for some
// images the manifest has units that its oracle did not write.
func statedUnits(t *testing.T, c corpus.Case) (units []string) {
	t.Helper()
	type multiscales struct {
		Multiscales []struct {
			Axes []struct{ Unit string }
		}
	}
	var m multiscales
	if c.Format == 2 {
		b, err := os.ReadFile(filepath.Join(c.Dir(t), ".zattrs"))
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		var doc struct {
			Attributes struct{ OME multiscales }
		}
		b, err := os.ReadFile(filepath.Join(c.Dir(t), "zarr.json"))
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		m = doc.Attributes.OME
	}
	for _, a := range m.Multiscales[0].Axes {
		units = append(units, a.Unit)
	}
	return units
}

func checkImage(t *testing.T, c corpus.Case, st store.Store) {
	im, err := Open(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	if im.Version != c.NGFF || im.Group.Format() != c.Format {
		t.Errorf("NGFF %s on Zarr v%d, want %s on v%d", im.Version, im.Group.Format(), c.NGFF, c.Format)
	}
	units := statedUnits(t, c)
	if len(im.Axes) != len(c.Axes) {
		t.Fatalf("axes %v, want %v", im.Axes, c.Axes)
	}
	missing := false
	for d, a := range im.Axes {
		if a.Name != c.Axes[d].Name || a.Type != c.Axes[d].Type || a.Unit != units[d] {
			t.Errorf("axis %d is %v, want %v with unit %q", d, a, c.Axes[d], units[d])
		}
		missing = missing || a.Type == TypeSpace && units[d] == ""
	}
	if missing != (len(im.Warnings) == 1 && strings.Contains(im.Warnings[0], "unit: missing")) || !missing && len(im.Warnings) > 0 {
		t.Errorf("warnings %q", im.Warnings)
	}
	if len(im.Levels) != len(c.Datasets) {
		t.Fatalf("%d levels, want %d", len(im.Levels), len(c.Datasets))
	}
	for k, want := range c.Datasets {
		l := im.Levels[k]
		if l.Path != want.Path {
			t.Errorf("level %d is %q, want %q", k, l.Path, want.Path)
		}
		if want.Scale != nil && (!slices.Equal(l.Scale, want.Scale) || !slices.Equal(l.Translation, want.Translation)) {
			t.Errorf("level %d has scale %v, translation %v; want %v, %v", k, l.Scale, l.Translation, want.Scale, want.Translation)
		}
		if want.Expected != "" {
			checkValues(t, l.Array, want.Expected)
		}
	}
	checkVoxelSize(t, im, c)
	checkOmero(t, im, c)
	checkLabels(t, im, c)
	for _, p := range Validate(t.Context(), st, "") {
		if p.Severity == Error {
			t.Errorf("a sound image has a problem: %v", p)
		}
	}
}

// checkVoxelSize: micrometres, by the stated unit or the rule for none.
func checkVoxelSize(t *testing.T, im *Image, c corpus.Case) {
	t.Helper()
	units := statedUnits(t, c)
	first := -1.0
	for d, a := range im.Axes {
		want := c.Datasets[0].Scale[d]
		if a.Type == TypeSpace {
			if first < 0 {
				first = want
			}
			if units[d] == "" && first < 1 {
				want *= 1000
			}
		}
		if im.VoxelSize[d] != want {
			t.Errorf("voxel size %v along %s, want %v", im.VoxelSize[d], a.Name, want)
		}
	}
}

func checkValues(t *testing.T, a *zarr.Array, npy string) {
	t.Helper()
	want := corpus.Npy(t, npy)
	if a.DType() != want.DType || !slices.Equal(a.Shape(), want.Shape) {
		t.Fatalf("%s: %v of %s, want %v of %s", a.Location(), a.Shape(), a.DType(), want.Shape, want.DType)
	}
	got := make([]byte, len(want.Data))
	if err := a.Read(t.Context(), a.Bounds(), got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Data) {
		t.Errorf("%s: values differ", a.Location())
	}
}

func checkOmero(t *testing.T, im *Image, c corpus.Case) {
	t.Helper()
	if (im.Omero != nil) != (c.Omero != nil) {
		t.Fatalf("omero %v, want %s", im.Omero, c.Omero)
	}
	if im.Omero == nil {
		return
	}
	var want struct {
		Name, Version string
		Channels      []Channel
	}
	if err := json.Unmarshal(c.Omero, &want); err != nil {
		t.Fatal(err)
	}
	if im.Omero.Name != want.Name || im.Omero.Version != want.Version || !reflect.DeepEqual(im.Omero.Channels, want.Channels) {
		t.Errorf("omero %+v, want %+v", im.Omero, want)
	}
	if len(want.Channels) == 0 || want.Channels[0].Window.End == 0 {
		t.Error("the manifest has no channels")
	}
	var raw, wantRaw any
	if json.Unmarshal(im.Omero.Raw, &raw) != nil || json.Unmarshal(c.Omero, &wantRaw) != nil || !reflect.DeepEqual(raw, wantRaw) {
		t.Errorf("omero as written is %s, want %s", im.Omero.Raw, c.Omero)
	}
}

func checkLabels(t *testing.T, im *Image, c corpus.Case) {
	t.Helper()
	type labelCase struct {
		Path       string
		ImageLabel struct {
			Version string
			Source  struct{ Image string }
			Colors  []struct {
				Value int64 `json:"label-value"`
				RGBA  []int
			}
			Properties []json.RawMessage
		} `json:"image-label"`
		Datasets []corpus.Dataset
	}
	var want map[string]labelCase
	if c.Labels != nil {
		if err := json.Unmarshal(c.Labels, &want); err != nil {
			t.Fatal(err)
		}
	}
	if len(im.Labels) != len(want) {
		t.Fatalf("labels %q, want %d", im.Labels, len(want))
	}
	for name, w := range want {
		l, err := im.Label(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		il := l.ImageLabel
		if il == nil || il.Version != w.ImageLabel.Version || il.Source != w.ImageLabel.Source.Image ||
			len(il.Colors) != len(w.ImageLabel.Colors) || len(il.Properties) != len(w.ImageLabel.Properties) || len(il.Colors) == 0 {
			t.Fatalf("image-label %+v, want %+v", il, w.ImageLabel)
		}
		for i, col := range w.ImageLabel.Colors {
			got := il.Colors[i]
			if got.Value != col.Value || !slices.EqualFunc(got.RGBA[:], col.RGBA, func(a uint8, b int) bool { return int(a) == b }) {
				t.Errorf("colour %+v, want %+v", got, col)
			}
		}
		if path.Join("labels", name) != w.Path || len(l.Levels) != len(w.Datasets) {
			t.Fatalf("label %q has %d levels, want %d at %q", name, len(l.Levels), len(w.Datasets), w.Path)
		}
		for k, d := range w.Datasets {
			if l.Levels[k].Path != d.Path || !slices.Equal(l.Levels[k].Scale, d.Scale) {
				t.Errorf("label level %d is %+v, want %+v", k, l.Levels[k], d)
			}
			checkValues(t, l.Levels[k].Array, d.Expected)
		}
	}
	if _, err := im.Label(t.Context(), "no such label"); err == nil {
		t.Error("a label that is not there was opened")
	}
}

func checkPlate(t *testing.T, c corpus.Case, st store.Store) {
	_, err := Open(t.Context(), st, "")
	if !errors.Is(err, ErrNoImage) || !strings.Contains(err.Error(), "plate") {
		t.Errorf("a plate opened as an image: %v", err)
	}
	p := metadataAt(t, st, "").Plate
	if p == nil {
		t.Fatal("no plate")
	}
	var want struct {
		Name, Version string
		FieldCount    int                     `json:"field_count"`
		Rows, Columns []struct{ Name string } `json:",omitempty"`
		Wells         []PlateWell
		Acquisitions  []Acquisition
	}
	if err := json.Unmarshal(c.Plate, &want); err != nil {
		t.Fatal(err)
	}
	got := Plate{Name: want.Name, Version: want.Version, FieldCount: want.FieldCount, Wells: want.Wells, Acquisitions: want.Acquisitions}
	for _, r := range want.Rows {
		got.Rows = append(got.Rows, r.Name)
	}
	for _, r := range want.Columns {
		got.Columns = append(got.Columns, r.Name)
	}
	if !reflect.DeepEqual(&got, p) || len(p.Wells) == 0 || len(p.Acquisitions) == 0 {
		t.Errorf("plate %+v, want %+v", p, got)
	}
	seen := 0
	for _, pw := range p.Wells {
		w := metadataAt(t, st, pw.Path).Well
		if w == nil {
			t.Fatalf("%s: no well", pw.Path)
		}
		for i, wi := range w.Images {
			if wi.Acquisition != 1+i%2 {
				t.Errorf("image %d of well %s is of acquisition %d", i, pw.Path, wi.Acquisition)
			}
			im, err := Open(t.Context(), st, path.Join(pw.Path, wi.Path))
			if err != nil {
				t.Fatal(err)
			}
			key := path.Join(pw.Path, wi.Path, im.Levels[0].Path)
			npy, ok := c.Images[key]
			if !ok {
				t.Fatalf("%s is not in the manifest", key)
			}
			checkValues(t, im.Levels[0].Array, npy)
			seen++
		}
	}
	if seen != len(c.Images) {
		t.Errorf("%d images, want %d", seen, len(c.Images))
	}
	for _, p := range Validate(t.Context(), st, "") {
		if p.Severity == Error {
			t.Errorf("a sound plate has a problem: %v", p)
		}
	}
}

// metadataAt returns the metadata of a group that must have no errors.
func metadataAt(t *testing.T, st store.Store, path string) *Metadata {
	t.Helper()
	g, err := zarr.OpenGroup(t.Context(), st, path)
	if err != nil {
		t.Fatal(err)
	}
	m, problems := ReadMetadata(g)
	for _, p := range problems {
		if p.fatal {
			t.Fatal(p)
		}
	}
	return m
}
