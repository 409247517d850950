package codec

import (
	"bytes"
	stdgzip "compress/gzip"
	stdzlib "compress/zlib"
	"io"
	"testing"

	"strata/tests/race"
)

// TestDeflateSegments: long chunks are encoded in segments; whoever does it makes the same bytes, which others decode.
func TestDeflateSegments(t *testing.T) {
	const length = 40 << 10
	lowerSegments(t, length)
	read := map[string]func(io.Reader) (io.ReadCloser, error){
		"gzip": func(r io.Reader) (io.ReadCloser, error) {
			z, err := stdgzip.NewReader(r)
			if err == nil {
				z.Multistream(false)
			}
			return z, err
		},
		"zlib": stdzlib.NewReader,
	}
	for _, n := range []int{2 * length, 2*length + 1, 4*length - 1, 4 * length} {
		for kind, src := range various(n) {
			for _, level := range []int{0, 1, 4, 6, 9} {
				for _, c := range []*deflateCodec{{"gzip", level}, {"zlib", level}} {
					whole, err := NewScratch().gzip.encode(*c, nil, src)
					if err != nil {
						t.Fatal(err)
					}
					stream := encodeBoth(t, kind, c, src)
					header := map[string]int{"gzip": 10, "zlib": 2}[c.wrapper]
					if !bytes.Equal(stream[:header], whole[:header]) || n > 2*length && bytes.Equal(stream, whole) || n == 2*length && !bytes.Equal(stream, whole) {
						t.Errorf("%s, %s, level %d, %d bytes: % x … of segments, % x … as a whole", kind, c.wrapper, level, n, stream[:header], whole[:header])
					}
					rest := bytes.NewReader(stream)
					r, err := read[c.wrapper](rest)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, src) || rest.Len() > 0 {
						t.Errorf("%s, %s, level %d, %d bytes: the other decoder: %d bytes are left, %v", kind, c.wrapper, level, n, rest.Len(), err)
					}
				}
			}
		}
	}
}

// TestDeflateSegmentSizes: a stream in segments takes at most 1 % more than a whole one, and some hundred bytes for
// each.
func TestDeflateSegmentSizes(t *testing.T) {
	race.Leave(t)
	const n = 9 << 20
	for kind, src := range various(n) {
		for _, level := range []int{1, 6, 9} {
			c := deflateCodec{"zlib", level}
			cut, err := c.Encode(NewScratch(), nil, src)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := NewScratch().gzip.encode(c, nil, src)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, level %d: %d bytes, %d in segments", kind, level, len(whole), len(cut))
			if len(cut) > len(whole)+len(whole)/100+600*segments(n) {
				t.Errorf("%s, level %d: %d bytes in segments, %d as a whole", kind, level, len(cut), len(whole))
			}
		}
	}
}
