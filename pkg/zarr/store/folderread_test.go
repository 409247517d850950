//go:build unix

package store

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// A file that becomes shorter while it is read is an error by every way to read it, and no
// crash where it is mapped.
func TestFileShrinks(t *testing.T) {
	for how, name := range map[Reading]string{ReadCached: "cached", ReadDirect: "direct", ReadMapped: "mapped"} {
		t.Run(name, func(t *testing.T) {
			s := Folder(t.TempDir(), ReadBy(how))
			want := content("x", 100_000)
			if err := s.Put(bg, "x", want); err != nil {
				t.Fatal(err)
			}
			o, err := s.Open(bg, "x")
			if errors.Is(err, ErrNoDirect) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			got := make([]byte, len(want))
			if n, err := o.ReadAt(bg, got, 0); n != len(want) || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, %v", n, err)
			}
			if err := os.Truncate(s.Location("x"), 5000); err != nil {
				t.Fatal(err)
			}
			if _, err := o.ReadAt(bg, got, 0); !errors.Is(err, ErrChanged) {
				t.Errorf("%v, want %v", err, ErrChanged)
			}
			if n, err := o.ReadAt(bg, got[:1000], 3000); n != 1000 || err != nil || !bytes.Equal(got[:1000], want[3000:4000]) {
				t.Errorf("what is still there: %d bytes, %v", n, err)
			}
		})
	}
}
