package jpegxr

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// tileFile is an image of 56×40 pixels of 16 bits, whose codestream begins at byte 134.
func tileFile(t testing.TB) []byte {
	t.Helper()
	src, err := os.ReadFile("testdata/tile.jxr")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// Errors say what is wrong, where, and what would be right.
func TestHostile(t *testing.T) {
	src := tileFile(t)
	patch := func(at int, b ...byte) []byte { return append(append(bytes.Clone(src[:at]), b...), src[at+len(b):]...) }
	const codestream, plane = 134, 134 + 16
	for _, c := range []struct {
		name string
		src  []byte
		want string
	}{
		{"empty", nil, `byte 0: "" is no JPEG XR file`},
		{"TIFF", patch(2, '*', 0), `byte 0: "II*\x00" is no JPEG XR file, which begins with "II\xbc\x01"`},
		{"version", patch(3, 2), "byte 3: version 2 of the container"},
		{"directory beyond the end", patch(4, 0xff, 0xff, 0xff, 0xff), "byte 4: the directory is said to be at byte 4294967295 of 675"},
		{"many entries", patch(32, 0xff, 0xff), "byte 32: a directory of 65535 entries goes beyond the end"},
		{"no pixel format", patch(34, 0), "byte 32: the directory names no pixel format"},
		{"pixel format beyond the end", patch(42, 0xff, 0xff), "byte 32: the directory names no pixel format"},
		{"alpha", patch(23, 0x0f), "byte 8: pixel format 24c3dd6f034efe4bb1853d77768dc90f is not supported: want 8-bit, 16-bit or 32-bit float grey"},
		{"orientation", patch(54, 1), "orientation 1 is not supported: want 0"},
		{"alpha plane", patch(58, 0xc2, 0xbc, 4, 0, 1, 0, 0, 0, 9), "an alpha plane is not supported"},
		{"codestream beyond the end", patch(115, 3), "byte 32: the codestream is said to be at byte 902 of 675"},
		{"no codestream", patch(codestream, 'w'), "byte 134: no codestream, which begins with WMPHOTO"},
		{"codec version", patch(codestream+8, 0x21), "version 2 of the codestream"},
		{"HD Photo", patch(codestream+8, 0x10), "sub-version 0 of the codestream (HD Photo of before the standard) is not supported: want 1"},
		{"frequency order without a table", patch(codestream+9, 0x40), "1×1 tiles and no index table"},
		{"overlap", patch(codestream+9, 3), "overlap 3: want 0, 1 or 2"},
		{"interleaved alpha", patch(codestream+10, 0xc1), "an alpha plane is not supported"},
		{"colour in grey", patch(codestream+11, 0x72), "colours 7 and depth 2 for an image of Gray16: want 0 and 2"},
		{"depth", patch(codestream+11, 1), "colours 0 and depth 1 for an image of Gray16: want 0 and 2"},
		{"tile of no size", patch(codestream+9, 0x84, 0xc0, 2, 0, 55, 0, 39, 0, 0x10, 0, 0), "tile 0 of 2 in columns goes from macroblock 0 to 0"},
		{"tiles beyond the end", patch(codestream+9, 0x84, 0xc0, 2, 0, 55, 0, 39, 0xff, 0xff, 0xff), "byte 675: the headers end early"},
		{"window", patch(codestream+10, 0xe0), "want sums that are multiples of 16"},
		{"CMYK", patch(plane, 0x90), "colours 4 inside are not supported"},
		{"colours inside", patch(plane, 0x70), "a colour image inside an image of Gray16"},
		{"bands", patch(plane, 0x14), "bands 4: want 0 to 3"},
		{"shift", patch(plane+1, 16), "samples of 16 bits are shifted by 16"},
		{"packet", patch(plane+13, 9), "no packet, which begins with 00 00 01"},
		{"stretching of 16 million tiles", append(patch(codestream+9, 0x84, 0xe8, 2, 0, 55, 0, 39, 0xff, 0xff, 0xff), make([]byte, 99999)...),
			"byte 100674: the headers end early"},
		{"cut off in the headers", src[:plane+2], "byte 152: the headers end early"},
		{"cut off in the data", src[:300], "byte 300: macroblock (2, 0): the data end early"},
		{"an image that is not there", patch(codestream+12, 0xff, 0xff, 0xff, 0xff), "65536×65536 pixels of Gray16"},
	} {
		_, err := ReadHeader(c.src)
		if err == nil {
			var d Decoder
			err = d.Decode(context.Background(), make([]byte, 56*40*2), 56*2, c.src)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "JPEG XR: ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Every file that is cut off is refused, by a place in it.
func TestCut(t *testing.T) {
	src := tileFile(t)
	place := regexp.MustCompile(`byte [0-9]+: `)
	var d Decoder
	dst := make([]byte, 56*40*2)
	for n := range src {
		if err := d.Decode(context.Background(), dst, 56*2, src[:n]); err == nil || !place.MatchString(err.Error()) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// Memory is neither taken for an image that dst does not hold nor for one that its bytes cannot be, and what is wrong
// with dst is said.
func TestMemory(t *testing.T) {
	src := tileFile(t)
	huge := bytes.Clone(src)
	copy(huge[134+12:], []byte{0xff, 0xff, 0, 0}) // 65536×1
	var d Decoder
	for _, c := range []struct {
		src    []byte
		n      int
		stride int
		want   string
	}{
		{src, 56*40*2 - 1, 112, "56×40 pixels of Gray16: 4479 bytes of memory for rows 112 apart"},
		{src, 10000, 111, "a stride of 111 bytes for rows of 112"},
		{src, 0, 1 << 62, "0 bytes of memory"},
		{huge, 2 << 16, 2 << 16, "519 bytes for 4096 macroblocks"},
	} {
		var before, after runtime.MemStats
		dst := make([]byte, c.n)
		runtime.ReadMemStats(&before)
		err := d.Decode(context.Background(), dst, c.stride, c.src)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
			t.Errorf("%s: %d bytes of memory", c.want, n)
		}
	}
}

// A Decoder takes no memory for the second image of a kind, and gives back what is the caller's.
func TestReuse(t *testing.T) {
	for _, g := range goldens(t) {
		var d Decoder
		dst := make([]byte, g.Shape[0]*g.Shape[1]*12)
		decode := func() {
			h, err := ReadHeader(g.Data)
			if err == nil {
				err = d.Decode(context.Background(), dst, h.Width*h.Format.Size(), g.Data)
			}
			if err != nil {
				t.Error(err)
			}
		}
		decode()
		if n := testing.AllocsPerRun(3, decode) - testing.AllocsPerRun(3, func() { _, _ = ReadHeader(g.Data) }); n > 0 {
			t.Errorf("%s: %v allocations", g.Name, n)
		}
	}
}

// Decode stops when its context is done.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var d Decoder
	if err := d.Decode(ctx, make([]byte, 56*40*2), 112, tileFile(t)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
