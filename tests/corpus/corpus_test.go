package corpus

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestCasesAndTheirFilesAreThere(t *testing.T) {
	cases := Cases(t)
	if len(cases) != 439 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		if _, err := os.Stat(c.Dir(t)); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
		if c.Expected != "" {
			if a := Npy(t, c.Expected); c.Shape != nil && len(c.Shape) != len(a.Shape) {
				t.Errorf("%s: shape %v, values %v", c.ID, c.Shape, a.Shape)
			}
		}
	}
}

func TestDiff(t *testing.T) {
	nan := []byte{0, 0, 0xc0, 0x7f}
	other := []byte{1, 0, 0xc0, 0xff}
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n"
	file := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	a, err := ParseNpy(append(append(file, header...), nan...))
	if err != nil {
		t.Fatal(err)
	}
	if d := a.Diff(nan); d != "" {
		t.Error(d)
	}
	if d := a.Diff(other); d != "" {
		t.Errorf("NaN with another payload: %s", d)
	}
	if a.Diff([]byte{0, 0, 0x80, 0x7f}) == "" || a.Diff(nan[:3]) == "" {
		t.Error("a difference was not seen")
	}
	if _, err := ParseNpy([]byte("\x93NUMPY\x01\x00\xff\xff{}  ")); err == nil {
		t.Error("a header beyond the file was read")
	}
}
