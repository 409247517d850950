package nrrd

import (
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/volumes"
	"strata/pkg/zarr/store"
)

func parseText(text string) (*parsed, error) {
	h, err := split([]byte(text))
	if err != nil {
		return nil, err
	}
	p, err := parse(h)
	if err == nil {
		err = p.Check()
	}
	return p, err
}

// What is written is read as it was.
func TestHeaders(t *testing.T) {
	for _, kind := range []dtype.Type{dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16, dtype.Int32, dtype.Uint32, dtype.Int64, dtype.Uint64, dtype.Float32, dtype.Float64} {
		v := &volumes.Volume{Width: 4, Height: 3, Depth: 2, Times: 1, Channels: 5, Type: kind, Space: volumes.Affine{{0, 0, -2, 7}, {0.5, 0, 0, 1.0 / 3}, {0, 0.25, 0, 9}}}
		b, err := Header(v, true)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parseText(string(b))
		if err != nil || p.Width != 4 || p.Depth != 2 || p.Channels != 5 || p.Together || p.Type != kind || p.Space != v.Space || !p.gzip || len(p.Warnings) > 0 {
			t.Errorf("%s: %+v, %v", kind, p, err)
		}
	}
	for _, kind := range []dtype.Type{dtype.Bool, dtype.Float16, dtype.Complex64} {
		if _, err := Header(&volumes.Volume{Width: 1, Height: 1, Depth: 1, Times: 1, Channels: 1, Type: kind, Space: volumes.Affine{{1}, {0, 1}, {0, 0, 1}}}, false); err == nil {
			t.Errorf("a header of %s", kind)
		}
	}
}

const good = `NRRD0004
# a comment
type: unsigned short
dimension: 3
space: left-posterior-superior
sizes: 4 3 2
space directions: (-0.5,0,0) (0,-0.25,0) (0,0,2)
kinds: domain domain domain
endian: big
encoding: raw
space units: "mm" "mm" "mm"
space origin: (-1,-2,3)
note:=a key of the user's
`

func TestFields(t *testing.T) {
	p, err := parseText(good + "\nvoxels")
	if err != nil || p.Width != 4 || p.Height != 3 || p.Depth != 2 || p.Type != dtype.Uint16 || !p.BigEndian || p.gzip ||
		p.Space != (volumes.Affine{{0.5, 0, 0, 1}, {0, 0.25, 0, 2}, {0, 0, 2, 3}}) || len(p.Warnings) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for name, c := range map[string]struct{ old, new, says string }{
		"magic":      {"NRRD0004", "NRRX", "no header of NRRD"},
		"no field":   {"endian: big", "endian big", `line "endian big" of the header is no field`},
		"type":       {"unsigned short", "block", `type: "block" is not supported`},
		"no type":    {"type: unsigned short\n", "", "type: missing"},
		"encoding":   {"encoding: raw", "encoding: bzip2", `encoding: "bzip2" is not supported (raw and gzip are)`},
		"endian":     {"endian: big\n", "", `endian: ""`},
		"dimension":  {"dimension: 3", "dimension: x", `dimension: "x"`},
		"sizes":      {"sizes: 4 3 2", "sizes: 4 3", "sizes: 2 values for 3 axes"},
		"no sizes":   {"sizes: 4 3 2\n", "", "sizes: missing"},
		"zero":       {"sizes: 4 3 2", "sizes: 4 0 2", `sizes: "0"`},
		"too many":   {"sizes: 4 3 2", "sizes: 2147483647 2147483647 2147483647", "more than can be counted"},
		"direction":  {"(0,-0.25,0)", "(0,x,0)", `space directions: "(0,x,0)" is no vector`},
		"no length":  {"(0,-0.25,0)", "(0,0,0)", "voxels have no length along y"},
		"in a plane": {"(0,-0.25,0)", "(1,0,0)", "lie in a plane"},
		"units":      {`"mm" "mm" "mm"`, `"parsec" "mm" "mm"`, `space units: "parsec"`},
		"origin":     {"(-1,-2,3)", "(-1,-2", "space origin"},
		"skip":       {"encoding: raw", "encoding: gzip\nbyte skip: -1", "byte skip"},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatal(c.old)
		}
		if _, err := parseText(strings.Replace(good, c.old, c.new, 1) + "\n"); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// A header never makes more of a file than there is, and no input panics.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(good + "\n" + strings.Repeat("ab", 24)))
	f.Add([]byte(strings.Replace(good, "encoding: raw", "encoding: raw\nbyte skip: -1\nline skip: 1", 1) + "\nx\n" + strings.Repeat("ab", 24)))
	f.Add([]byte(strings.Replace(good, "encoding: raw", "encoding: gzip", 1) + "\n\x1f\x8b"))
	f.Add([]byte("NRRD0001\ntype: float\ndimension: 2\nsizes: 1 1\nspacings: nan 0.5\nencoding: raw\ndata file: x.raw\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := store.Memory()
		if err := mem.Put(t.Context(), "x.nrrd", b); err != nil {
			t.Fatal(err)
		}
		o, err := mem.Open(t.Context(), "x.nrrd")
		if err != nil {
			t.Fatal(err)
		}
		st, err := Open(t.Context(), o, "x.nrrd", 0, mem.Open)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		defer st.Close()
		for _, key := range []string{"zarr.json", "0/zarr.json", "0/c/0/0/0"} {
			_, _ = st.Get(t.Context(), key, nil, 1<<20) // an image without z has other keys
		}
	})
}
