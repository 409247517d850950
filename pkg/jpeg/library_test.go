package jpeg

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// withLibrary makes the library decode for the time of a test: the one that STRATA_LIBJPEG names, or the system's.
func withLibrary(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) == "off" {
		t.Skip("libturbojpeg is turned off")
	}
	l, err := openLibrary()
	if err != nil {
		t.Skipf("libturbojpeg is not installed: %v", err)
	}
	choose(t, l)
}

// without makes this package decode for the time of a test.
func without(t testing.TB) { choose(t, nil) }

func choose(t testing.TB, l *library) {
	old := theLibrary
	theLibrary = func() (*library, error) { return l, nil }
	t.Cleanup(func() { theLibrary = old })
}

// byLibraryAlone decodes a stream by the library and says whether it did.
func byLibraryAlone(t testing.TB, d *Decoder, dst, tables, src []byte, c Config) bool {
	t.Helper()
	*d = Decoder{session: d.session}
	if _, err := d.Decode(background, dst, tables, src, c); err != nil {
		return false
	}
	return d.mix == nil // nothing was prepared
}

// TestLibrary: what the library decodes has the pixels that this package gives, as stored and as RGB.
func TestLibrary(t *testing.T) {
	withLibrary(t)
	var d Decoder
	used := 0
	for _, g := range goldens(t) {
		for color, want := range []string{AsStored: g.Stored, ToRGB: g.RGB} {
			c := g.config(Color(color))
			for _, separate := range []bool{false, true} {
				var tables []byte
				data := g.data
				if separate {
					tables = tablesOf(t, g.data)
					data = cut(t, g.data, isTable)
				}
				c.Stride = c.Width*c.Components + 3
				dst := make([]byte, c.Stride*c.Height)
				if byLibraryAlone(t, &d, dst, tables, data, c) {
					used++
				}
				packed := make([]byte, 0, len(dst))
				for y := range c.Height {
					packed = append(packed, dst[y*c.Stride:][:c.Stride-3]...)
				}
				if sum(packed) != want {
					t.Errorf("%s, colour %d, tables apart %v: other pixels", g.Name, color, separate)
				}
			}
		}
	}
	if used < 150 {
		t.Errorf("the library decoded %d streams only", used)
	}
}

// tablesOf returns an abbreviated stream of a stream's tables.
func tablesOf(t testing.TB, stream []byte) []byte {
	t.Helper()
	only := cut(t, stream, func(m byte) bool { return !isTable(m) })
	return append(only[:bytes.Index(only, []byte{0xFF, markSOS})], 0xFF, markEOI)
}

// TestLibraryHostile: damaged streams have the same errors with the library, but for one that it does not see, and the
// same pixels, unless the damage makes coefficients that are far out of range.
func TestLibraryHostile(t *testing.T) {
	withLibrary(t)
	with := theLibrary
	none := func() (*library, error) { return nil, nil }
	var ours, theirs Decoder
	differ, same := 0, 0
	for _, g := range goldens(t) {
		if g.Name != "size_17x33_2x2" && g.Name != "size_5x3_2x1" && g.Name != "grey" {
			continue
		}
		c := g.config(ToRGB)
		a, b := make([]byte, c.Width*c.Height*c.Components), make([]byte, c.Width*c.Height*c.Components)
		bad := bytes.Clone(g.data)
		for i := range bad {
			for bit := range 8 {
				bad[i] ^= 1 << bit
				clear(a)
				clear(b)
				theLibrary = none
				_, errA := ours.Decode(background, a, nil, bad, c)
				theLibrary = with
				_, errB := theirs.Decode(background, b, nil, bad, c)
				bad[i] ^= 1 << bit
				switch {
				case errA != nil && errB == nil && strings.Contains(errA.Error(), errBeyond.Error()):
				case (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error():
					t.Errorf("%s, byte %d, bit %d: %v, with the library %v", g.Name, i, bit, errA, errB)
				case errA == nil && !bytes.Equal(a, b):
					differ++
				default:
					same++
				}
			}
		}
	}
	if same < 20000 || differ > 100 {
		t.Errorf("%d damaged streams give the same, %d do not", same, differ)
	}
}

// TestVariable: a library that is named must be there; one that is not named need not.
func TestVariable(t *testing.T) {
	t.Setenv(Variable, "off")
	if l, err := chooseLibrary(); l != nil || err != nil {
		t.Errorf("off: %v, %v", l, err)
	}
	t.Setenv(Variable, "/nowhere/libturbojpeg.so")
	if l, err := chooseLibrary(); l != nil || err == nil || !strings.Contains(err.Error(), Variable) {
		t.Errorf("a file that does not exist: %v, %v", l, err)
	}
	t.Setenv(Variable, "")
	l, err := chooseLibrary()
	if haveAVX2 && haveBMI2 && l != nil || err != nil {
		t.Errorf("not set: %v, %v", l, err)
	}
}
