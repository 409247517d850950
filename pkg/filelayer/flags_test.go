package filelayer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"

	"strata/pkg/settings"
)

func TestFlags(t *testing.T) {
	p := pool(t, nil, settings.Default())
	content := random(1000)
	for mode, want := range map[string]struct{ read, write, empties, makes bool }{
		"r": {read: true}, "r+": {read: true, write: true}, "w": {write: true, empties: true, makes: true}, "w+": {true, true, true, true},
	} {
		flag, err := Flags(mode)
		if err != nil {
			t.Fatal(err)
		}
		path := file(t, content)
		f := openFile(t, p, path, flag)
		b := make([]byte, 10)
		if after, err := os.ReadFile(path); err != nil || bytes.Equal(after, content) == want.empties {
			t.Errorf("%s: %d bytes, %v", mode, len(after), err)
		}
		if err := f.WriteAt(t.Context(), b, 0); (err == nil) != want.write {
			t.Errorf("%s: written: %v", mode, err)
		}
		if err := f.ReadAt(t.Context(), b, 0); (err == nil) != want.read {
			t.Errorf("%s: read: %v", mode, err)
		}
		g, err := p.Open(path+".none", flag, 0o666)
		if (err == nil) != want.makes || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: made: %v", mode, err)
		}
		if g != nil {
			g.Close()
		}
	}
	for _, mode := range []string{"", "a", "rb", "r+w"} {
		if _, err := Flags(mode); err == nil {
			t.Errorf("%q is taken", mode)
		}
	}
}
