package filelayer

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/settings"
)

// pool is a pool of the test's, of a device or of none. Where a real device does not do what the
// settings demand, the test is skipped.
func pool(t testing.TB, d *gpu.Device, s settings.Settings) *Pool {
	t.Helper()
	p, err := NewPool(d, s, func(text string) { t.Log("warning: ", text) })
	if err != nil && d != nil && !doubled(d) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func file(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func openFile(t testing.TB, p *Pool, path string, flag int) *File {
	t.Helper()
	f, err := p.Open(path, flag, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	})
	return f
}

// doubled tells whether a device and cuFile are the doubles, not those of a machine that
// this test is brought to.
func doubled(d *gpu.Device) bool {
	return d != nil && d.Info.Name == "CUEMU" && os.Getenv("STRATA_LIBCUFILE") != ""
}
