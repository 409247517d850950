package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// rowsOf is what ReadRows is to write: rows of content, and between them what was there.
func rowsOf(want []byte, rows, length, pitch int) []byte {
	out := bytes.Repeat([]byte{7}, (rows-1)*pitch+length)
	for k := range rows {
		copy(out[k*pitch:], want[k*length:(k+1)*length])
	}
	return out
}

func TestReadRows(t *testing.T) {
	want := content("x", 3000*100)
	for how, name := range map[Reading]string{ReadCached: "cached", ReadDirect: "direct", ReadMapped: "mapped"} {
		t.Run(name, func(t *testing.T) {
			s := Folder(t.TempDir(), ReadBy(how))
			if err := s.Put(bg, "x", want); err != nil {
				t.Fatal(err)
			}
			object, err := s.Open(bg, "x")
			if errors.Is(err, ErrNoDirect) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			o := object.(RowReader)
			for _, c := range []struct{ rows, length, pitch, off int }{
				{1, 100, 100, 0}, {3, 100, 150, 7}, {3000, 100, 101, 0}, {1025, 10, 30, 1000}, {1024, 100, 100, 50}, {2, 100, 5000, 300_000 - 200},
			} {
				got := bytes.Repeat([]byte{7}, (c.rows-1)*c.pitch+c.length)
				n, err := o.ReadRows(bg, got, Rows{c.rows, c.length, c.pitch}, int64(c.off))
				if n != c.rows*c.length || err != nil || !bytes.Equal(got, rowsOf(want[c.off:], c.rows, c.length, c.pitch)) {
					t.Errorf("%+v: %d bytes, %v", c, n, err)
				}
			}
			got := make([]byte, 5*100)
			if n, err := o.ReadRows(bg, got, Rows{5, 100, 100}, 300_000-250); n != 250 || !errors.Is(err, io.EOF) {
				t.Errorf("past the end: %d bytes, %v", n, err)
			}
			if _, err := o.ReadRows(bg, got, Rows{1, 100, 100}, -1); err == nil {
				t.Error("a negative offset was accepted")
			}
			ended, cancel := context.WithCancel(bg)
			cancel()
			if _, err := o.ReadRows(ended, got, Rows{5, 100, 100}, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			if err := os.Truncate(s.Location("x"), 8192); err != nil {
				t.Fatal(err)
			}
			if n, err := o.ReadRows(bg, make([]byte, len(want)), Rows{60, 5000, 5000}, 0); n > 8192 || !errors.Is(err, ErrChanged) {
				t.Errorf("a file that became shorter: %d bytes, %v", n, err)
			}
			object.Close()
			if _, err := o.ReadRows(bg, got, Rows{1, 10, 10}, 0); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}

// The rows of a member of a zip file are read as those of a file.
func TestReadRowsOfZip(t *testing.T) {
	want := content("x", 3000*100)
	path := filepath.Join(t.TempDir(), "x.zip")
	if err := os.WriteFile(path, zipBytes(t, map[string][]byte{"a": content("a", 1000), "x": want, "y": content("y", 1000)}, stored), 0o666); err != nil {
		t.Fatal(err)
	}
	z, err := Zip(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	object, err := z.Open(bg, "x")
	if err != nil {
		t.Fatal(err)
	}
	o := object.(RowReader)
	got := bytes.Repeat([]byte{7}, 1999*150+100)
	if n, err := o.ReadRows(bg, got, Rows{2000, 100, 150}, 50); n != 200_000 || err != nil || !bytes.Equal(got, rowsOf(want[50:], 2000, 100, 150)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := o.ReadRows(bg, got, Rows{5, 100, 100}, 300_000-250); n != 250 || !errors.Is(err, io.EOF) {
		t.Errorf("past the end of the member: %d bytes, %v", n, err)
	}
	object.Close()
	if _, err := o.ReadRows(bg, got, Rows{1, 10, 10}, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
