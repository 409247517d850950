package nifti

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/volumes"
	"strata/pkg/zarr/store"
)

// near reports whether two affines say the same place to what float32 holds.
func near(a, b *volumes.Affine) bool { return !differ(a, b, 1e-5) }

func volume(t dtype.Type) *volumes.Volume {
	return &volumes.Volume{Width: 4, Height: 3, Depth: 2, Times: 1, Channels: 1, Type: t, Name: "v", Space: volumes.Affine{{0, 0, -2, 7}, {0.5, 0, 0, 8}, {0, 0.25, 0, 9}}}
}

// What is written is read as it was, in all types and orientations, and as NIfTI-2 where axes are long.
func TestHeaders(t *testing.T) {
	for code, kind := range types {
		if code == rgb || code == rgba {
			continue
		}
		for _, width := range []int{4, MostShort + 1} {
			v := volume(kind)
			v.Width, v.Times, v.Interval, v.Codes = width, 3, 2.5, map[string]any{"sform_code": 4.0, "qform_code": 2.0}
			b, err := Header(v)
			if err != nil {
				t.Fatal(err)
			}
			got, offset, err := parse(b)
			if err != nil || offset != int64(len(b)) {
				t.Fatalf("%s: offset %d of %d, %v", kind, offset, len(b), err)
			}
			if got.Width != width || got.Height != 3 || got.Depth != 2 || got.Times != 3 || got.Type != kind || got.Interval != 2.5 || !near(&got.Space, &v.Space) || len(got.Warnings) > 0 {
				t.Errorf("%s: %+v", kind, got)
			}
			if got.Codes["sform_code"] != int64(4) || got.Codes["qform_code"] != int64(2) {
				t.Errorf("codes %v", got.Codes)
			}
			// the qform alone says the same place
			at := map[bool]int{false: 254, true: 348}[width > MostShort]
			binary.LittleEndian.PutUint16(b[at:], 0)
			if got, _, err = parse(b); err != nil || !near(&got.Space, &v.Space) {
				t.Errorf("%s by its qform: %v, %v", kind, got, err)
			}
		}
	}
	for _, kind := range []dtype.Type{dtype.Bool, dtype.Float16, dtype.Complex64} {
		if _, err := Header(volume(kind)); err == nil {
			t.Errorf("a header of %s", kind)
		}
	}
	sheared := volume(dtype.Uint8)
	sheared.Space = volumes.Affine{{1, 0.5, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}
	b, err := Header(sheared)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := parse(b); err != nil || got.Codes["qform_code"] != int64(0) || !near(&got.Space, &sheared.Space) {
		t.Errorf("sheared: %v, %v", got, err)
	}
}

// Each fault is named.
func TestFaults(t *testing.T) {
	short := func(at int, x uint16) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint16(b[at:], x) }
	}
	float := func(at int, x float64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], math.Float32bits(float32(x))) }
	}
	for name, c := range map[string]struct {
		change func(b []byte)
		says   string
	}{
		"magic":      {func(b []byte) { b[344] = 'x' }, "no header of NIfTI"},
		"length":     {short(0, 347), "the header says that it has 347 bytes (must be 348)"},
		"Analyze":    {func(b []byte) { copy(b[344:], "\x00\x00\x00\x00"); b[38] = 'r' }, "a header of Analyze 7.5"},
		"dimensions": {short(40, 8), "dim[0] is 8 (must be 1 to 7)"},
		"no voxels":  {short(44, 0), "dim[2] is 0"},
		"negative":   {short(44, 0xffff), "dim[2] is -1"},
		"seven":      {func(b []byte) { short(40, 7)(b); short(54, 2)(b) }, "more than five dimensions"},
		"type":       {short(70, 1), "datatype is 1, single bits"},
		"complex":    {short(70, 32), "datatype is 32, complex numbers"},
		"what type":  {short(70, 99), "datatype is 99, an unknown type"},
		"offset":     {float(108, 300), "vox_offset is 300 (must be 352 or more)"},
		"no offset":  {float(108, math.NaN()), "vox_offset is 0"},
		"units":      {func(b []byte) { b[123] = 7 }, "xyzt_units is 7"},
		"not finite": {float(280, math.Inf(1)), "must be finite numbers"},
		"no size":    {func(b []byte) { float(280, 0)(b); float(296, 0)(b); float(312, 0)(b) }, "voxels have no length along x"},
		"in a plane": {func(b []byte) {
			copy(b[284:288], b[280:284])
			copy(b[300:304], b[296:300])
			copy(b[316:320], b[312:316])
		}, "lie in a plane"},
		"quaternion":  {func(b []byte) { short(254, 0)(b); float(256, 3)(b) }, "the quaternion 3"},
		"pixdim":      {func(b []byte) { short(254, 0)(b); float(80, 0)(b) }, "pixdim[1] is 0"},
		"pixdim only": {func(b []byte) { short(254, 0)(b); short(252, 0)(b); float(84, 0)(b) }, "pixdim[2] is 0"},
	} {
		b, err := Header(volume(dtype.Int16))
		if err != nil {
			t.Fatal(err)
		}
		c.change(b)
		if _, _, err := parse(b); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	// what is doubtful is said
	for name, c := range map[string]struct {
		change func(b []byte)
		says   string
	}{
		"two places": {float(268, 99), "sform and qform say different places"},
		"no place":   {func(b []byte) { short(254, 0)(b); short(252, 0)(b) }, "states no place in space"},
		"no unit":    {func(b []byte) { b[123] = 0 }, "states no unit of length"},
	} {
		b, err := Header(volume(dtype.Int16))
		if err != nil {
			t.Fatal(err)
		}
		c.change(b)
		if v, _, err := parse(b); err != nil || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], c.says) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

// A header never makes more of a file than there is, and no input panics.
func FuzzOpen(f *testing.F) {
	for _, kind := range []dtype.Type{dtype.Uint8, dtype.Float32} {
		v := volume(kind)
		b, err := Header(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, make([]byte, v.Bytes())...))
		v.Width = MostShort + 1
		if b, err = Header(v); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := store.Memory()
		if err := mem.Put(t.Context(), "x.nii", b); err != nil {
			t.Fatal(err)
		}
		o, err := mem.Open(t.Context(), "x.nii")
		if err != nil {
			t.Fatal(err)
		}
		st, err := Open(t.Context(), o, "x.nii", 0, mem.Open)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		defer st.Close()
		if st.Volume().Bytes() > int64(len(b)) {
			t.Fatalf("%+v in %d bytes", st.Volume(), len(b))
		}
		for _, key := range []string{"zarr.json", "0/zarr.json", "0/c/0/0/0"} {
			_, _ = st.Get(t.Context(), key, nil, 1<<20) // an image without z has other keys
		}
	})
}
