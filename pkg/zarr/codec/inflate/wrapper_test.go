package inflate

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	kgzip "github.com/klauspost/compress/gzip"
)

func gzipped(t testing.TB, data []byte, header gzip.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Header = header
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zlibbed(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var fullHeader = gzip.Header{Name: "c/0/0", Comment: "a chunk", Extra: []byte("some bytes, one of them \x00"), ModTime: time.Unix(1e9, 0)}

// withHCRC adds the CRC-16 of the header, which is n bytes long.
func withHCRC(s []byte, n int) []byte {
	s = bytes.Clone(s)
	s[3] |= flagHCRC
	sum := binary.LittleEndian.AppendUint16(nil, uint16(crc32.ChecksumIEEE(s[:n])))
	return append(s[:n:n], append(sum, s[n:]...)...)
}

func TestGzip(t *testing.T) {
	data := sample("float32", 3000)
	plain, full := gzipped(t, data, gzip.Header{}), gzipped(t, data, fullHeader)
	fullLen := len(full) - len(plain) + 10
	none := gzipped(t, nil, gzip.Header{})
	two := append(bytes.Clone(plain), full...)
	changed := func(s []byte, at int, b byte) []byte {
		s = bytes.Clone(s)
		if at < 0 {
			at += len(s)
		}
		s[at] ^= b
		return s
	}
	for _, c := range []struct {
		name  string
		src   []byte
		want  []byte
		is    error
		fault string
	}{
		{"plain", plain, data, nil, ""},
		{"all fields", full, data, nil, ""},
		{"header crc", withHCRC(plain, 10), data, nil, ""},
		{"all fields and header crc", withHCRC(full, fullLen), data, nil, ""},
		{"no data", none, nil, nil, ""},
		{"two members", two, append(bytes.Clone(data), data...), nil, ""},
		{"empty members", append(append(bytes.Clone(none), plain...), none...), data, nil, ""},
		{"nothing", nil, nil, ErrTruncated, ""},
		{"garbage after the member", append(bytes.Clone(plain), "garbage"...), nil, ErrCorrupt, "7 bytes follow"},
		{"zeros after the member", append(bytes.Clone(plain), 0, 0), data, nil, ""},
		{"zeros and a byte after the member", append(bytes.Clone(plain), 0, 0, 1), nil, ErrCorrupt, "3 bytes follow"},
		{"half a member after the member", two[:len(two)-1], nil, ErrTruncated, ""},
		{"one byte of a member after the member", two[:len(plain)+1], nil, ErrTruncated, ""},
		{"other method", changed(plain, 2, 1), nil, ErrCorrupt, "byte 2, bit 0: no gzip header"},
		{"not gzip", changed(plain, 0, 1), nil, ErrCorrupt, "byte 0, bit 0: no gzip header"},
		{"second member not deflate", changed(two, len(plain)+2, 1), nil, ErrCorrupt, "no gzip header"},
		{"reserved flag", changed(plain, 3, 0x20), nil, ErrCorrupt, "reserved"},
		{"header crc wrong", changed(withHCRC(full, fullLen), fullLen, 1), nil, ErrChecksum, "header"},
		{"crc wrong", changed(plain, -8, 1), nil, ErrChecksum, "crc-32"},
		{"size wrong", changed(plain, -1, 1), nil, ErrChecksum, "3000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := guarded(t, Gzip, 7000, c.src)
			if !errors.Is(err, c.is) || c.is == nil && !bytes.Equal(got, c.want) {
				t.Fatalf("%d bytes, %v; it should be %d bytes, %v", len(got), err, len(c.want), c.is)
			}
			if err != nil && (!strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%q should be one line and say %q", err, c.fault)
			}
			if c.is == nil && len(c.want) > 0 {
				if _, err := guarded(t, Gzip, len(c.want)-1, c.src); !errors.Is(err, ErrTooLong) {
					t.Errorf("one byte less room gives %v", err)
				}
			}
		})
	}
	all := withHCRC(full, fullLen)
	for n := range all {
		if _, err := guarded(t, Gzip, len(data), all[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("the first %d of %d bytes give %v", n, len(all), err)
		}
	}
}

// TestSecondMember: a match must not reach into the member before, although its bytes are there.
func TestSecondMember(t *testing.T) {
	first := gzipped(t, []byte("abcdefgh"), gzip.Header{})
	var w bitWriter
	w.block(1).fixedLit('a').fixedLit(257).word(1, 5).fixedLit(256)
	second := append(bytes.Clone(first[:10]), w.b...)
	if _, err := guarded(t, Gzip, 100, append(first, second...)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "distance 2 with 1 bytes") {
		t.Error(err)
	}
}

func TestZlib(t *testing.T) {
	data := sample("text", 3000)
	s := zlibbed(t, data)
	with := func(at int, b ...byte) []byte {
		s := bytes.Clone(s)
		if at < 0 {
			at += len(s)
		}
		copy(s[at:], b)
		return s
	}
	for _, c := range []struct {
		name  string
		src   []byte
		is    error
		fault string
	}{
		{"plain", s, nil, ""},
		{"small window", with(0, 0x18, 0x19), nil, ""},
		{"nothing", nil, ErrTruncated, ""},
		{"window too large", with(0, 0x88, 0x1c), ErrCorrupt, "no zlib header: method and window 0x88"},
		{"other method", with(0, 0x79, 0x9c), ErrCorrupt, "no zlib header: method"},
		{"header check", with(0, 0x78, 0x9d), ErrCorrupt, "multiple of 31"},
		{"dictionary", with(0, 0x78, 0xbb), ErrCorrupt, "dictionary"},
		{"checksum", with(-1, s[len(s)-1]+1), ErrChecksum, "adler-32"},
		{"zeros after it", append(bytes.Clone(s), 0, 0, 0), nil, ""},
		{"garbage after it", append(bytes.Clone(s), 0, 7), ErrCorrupt, "2 bytes follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := guarded(t, Zlib, 7000, c.src)
			if !errors.Is(err, c.is) || c.is == nil && !bytes.Equal(got, data) {
				t.Fatalf("%d bytes, %v; it should be %d bytes, %v", len(got), err, len(data), c.is)
			}
			if err != nil && (!strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%q should be one line and say %q", err, c.fault)
			}
		})
	}
	for n := range s {
		if _, err := guarded(t, Zlib, len(data), s[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("the first %d of %d bytes give %v", n, len(s), err)
		}
	}
	if _, err := guarded(t, Zlib, len(data)-1, s); !errors.Is(err, ErrTooLong) {
		t.Errorf("one byte less room gives %v", err)
	}
}

// FuzzWrappers looks for crashes and writes out of bounds, and that what is accepted is what compress/gzip and
// compress/zlib read.
func FuzzWrappers(f *testing.F) {
	f.Add(gzipped(f, sample("text", 300), fullHeader))
	f.Add(withHCRC(gzipped(f, sample("text", 300), gzip.Header{}), 10))
	f.Add(append(gzipped(f, []byte("one"), gzip.Header{}), gzipped(f, []byte("two"), gzip.Header{})...))
	f.Add(zlibbed(f, sample("float32", 300)))
	f.Fuzz(func(t *testing.T, s []byte) {
		const limit = 5000
		if got, err := guarded(t, Gzip, limit, s); err == nil {
			r, err := kgzip.NewReader(bytes.NewReader(s))
			if err != nil {
				t.Fatal(err)
			}
			same(t, r, got)
		}
		if got, err := guarded(t, Zlib, limit, s); err == nil {
			r, err := zlib.NewReader(bytes.NewReader(s))
			if err != nil {
				t.Fatal(err)
			}
			same(t, r, got)
		}
	})
}

// Bytes behind the stream do not matter; a stream that has more than dst holds is refused, since its checksum would go
// unseen.
func TestZlibPrefix(t *testing.T) {
	for _, kind := range []string{"zeros", "random", "float32"} {
		data := sample(kind, 70_000)
		s := append(zlibbed(t, data), 0, 0, 0)
		for _, n := range []int{0, 1, 2, 255, 257, 258, 4096, 65535, 65536, len(data) - 1, len(data), len(data) + 5} {
			dst := make([]byte, n)
			got, err := ZlibPrefix(t.Context(), dst, s)
			if n < len(data) && errors.Is(err, ErrTooLong) {
				continue
			}
			if err != nil || !bytes.Equal(dst[:got], data) {
				t.Errorf("%s, %d: %d bytes, %v", kind, n, got, err)
			}
		}
		s[len(s)-5] ^= 1
		if _, err := ZlibPrefix(t.Context(), make([]byte, len(data)), s); !errors.Is(err, ErrChecksum) {
			t.Errorf("%s: checksum: %v", kind, err)
		}
	}
}
