package inflate

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/tests/corpus"
)

// TestCorpus decodes every file of the conformance corpus that the standard library reads as gzip or zlib, and refuses
// the others that look like it.
func TestCorpus(t *testing.T) {
	const limit = 1 << 18
	read := func(r io.Reader, err error) ([]byte, bool) {
		if err != nil {
			return nil, false
		}
		b, err := io.ReadAll(io.LimitReader(r, limit+1))
		return b, err == nil && len(b) <= limit
	}
	accepted, refused := 0, 0
	err := filepath.WalkDir(corpus.Dir(t), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		s, err := os.ReadFile(path)
		if err != nil || len(s) < 2 {
			return err
		}
		var want []byte
		var ok bool
		decode := Gzip
		if s[0] == 0x1f && s[1] == 0x8b {
			want, ok = read(gzip.NewReader(bytes.NewReader(s)))
		} else {
			decode = Zlib
			in := bytes.NewReader(s)
			want, ok = read(zlib.NewReader(in))
			ok = ok && in.Len() == 0
		}
		if !ok && strings.Contains(path, "_zeros.zarr") { // behind the stream, which the standard library refuses
			trimmed := bytes.TrimRight(s, "\x00")
			for n := len(trimmed); n <= len(s) && !ok; n++ { // its checksum, or size, may end with zeros
				if decode := s[:n]; s[0] == 0x1f {
					want, ok = read(gzip.NewReader(bytes.NewReader(decode)))
				} else {
					want, ok = read(zlib.NewReader(bytes.NewReader(decode)))
				}
			}
		}
		got, err := guarded(t, decode, limit, s)
		if ok != (err == nil) || ok && !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; the standard library reads %d, %v", path, len(got), err, len(want), ok)
		}
		if ok {
			accepted++
		} else if s[0] == 0x1f || s[0] == 0x78 {
			refused++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d streams, %d broken ones", accepted, refused)
	if accepted < 50 || refused < 4 {
		t.Errorf("only %d streams and %d broken ones in the corpus", accepted, refused)
	}
}

func TestMain(m *testing.M) { corpus.Main(m) }
