package jpeg2000

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

//go:embed testdata/rgb.j2k
var rgbStream []byte

//go:embed testdata/rgb.jp2
var rgbFile []byte

//go:embed testdata/deep.j2k
var deepStream []byte

var (
	rgbConfig  = Config{Width: 30, Height: 20, Components: 3, Size: 1}
	deepConfig = Config{Width: 30, Height: 20, Components: 1, Size: 2}
)

func rgbPixels() (p []byte) {
	for y := range 20 {
		for x := range 30 {
			for c := range 3 {
				p = append(p, byte(3*x+5*y+40*c))
			}
		}
	}
	return p
}

func deepPixels() (p []byte) {
	for y := range 20 {
		for x := range 30 {
			p = binary.LittleEndian.AppendUint16(p, uint16(300*x+500*y-9000))
		}
	}
	return p
}

func needLibrary(t *testing.T) {
	if err := Available(); err != nil {
		if !strings.Contains(err.Error(), "JPEG 2000 needs libopenjp2 (Debian: libopenjp2-7)") {
			t.Error(err)
		}
		t.Skip("libopenjp2 is not installed")
	}
}

func TestDecode(t *testing.T) {
	needLibrary(t)
	for _, c := range []struct {
		name string
		src  []byte
		c    Config
		want []byte
	}{
		{"codestream", rgbStream, rgbConfig, rgbPixels()},
		{"file, tiled", rgbFile, rgbConfig, rgbPixels()},
		{"16 bits", deepStream, deepConfig, deepPixels()},
	} {
		dst := make([]byte, len(c.want))
		if err := Decode(dst, c.src, c.c); err != nil || !bytes.Equal(dst, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := Decode(dst[1:], c.src, c.c); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
			t.Errorf("%s, too little memory: %v", c.name, err)
		}
	}
}

// Many goroutines decode at the same time.
func TestConcurrent(t *testing.T) {
	needLibrary(t)
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			dst := make([]byte, 30*20*3)
			for range 20 {
				if err := Decode(dst, rgbStream, rgbConfig); err != nil || !bytes.Equal(dst, rgbPixels()) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestReadHeader(t *testing.T) {
	want := Header{Width: 30, Height: 20, Tiles: 1, Components: []Component{{8, false, 1, 1}, {8, false, 1, 1}, {8, false, 1, 1}}}
	if h, err := readHeader(rgbStream); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, %v", h, err)
	}
	want.Tiles = 4
	if h, err := readHeader(rgbFile); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := readHeader(deepStream); err != nil || !reflect.DeepEqual(h, Header{30, 20, 1, []Component{{16, true, 1, 1}}}) {
		t.Errorf("%+v, %v", h, err)
	}
}

// Headers that do not fit are refused before the library sees them.
func TestHostile(t *testing.T) {
	put := func(src []byte, at int, v uint32) []byte {
		src = bytes.Clone(src)
		binary.BigEndian.PutUint32(src[at:], v)
		return src
	}
	const siz = 8 // of the first number of SIZ
	cod := bytes.Index(rgbStream, []byte{0xff, 0x52})
	layers := bytes.Clone(rgbStream)
	binary.BigEndian.PutUint16(layers[cod+6:], 65535)
	// precincts of one sample, of three resolution levels
	body := rgbStream[cod+4 : cod+2+int(binary.BigEndian.Uint16(rgbStream[cod+2:]))]
	small := append([]byte{0xff, 0x52, 0, byte(2 + len(body) + 3), body[0] | 1}, body[1:]...)
	small = append(append(bytes.Clone(rgbStream[:cod]), append(small, 0, 0, 0)...), rgbStream[cod+4+len(body):]...)
	binary.BigEndian.PutUint16(small[cod+6:], 65535)
	for _, c := range []struct {
		name string
		src  []byte
		want string
	}{
		{"empty", nil, "neither a codestream nor a JP2 file"},
		{"text", []byte("not an image, of any kind"), "neither a codestream nor a JP2 file"},
		{"cut off in SIZ", rgbStream[:40], "no SIZ marker"},
		{"cut off behind SIZ", rgbStream[:50], "SIZ marker of 47 bytes"},
		{"wide", put(rgbStream, siz, 65500), "65500×20 pixels and 3 components, expected are 30×20"},
		{"no height", put(rgbStream, siz+4, 0), "30×0 pixels"},
		{"offset", put(rgbStream, siz+8, 5), "begin at (5, 0)"},
		{"tiles of no width", put(rgbStream, siz+16, 0), "tiles of 0×"},
		{"no components", put(rgbStream, siz+30, 0x00000000), "0 components"},
		{"subsampling 0", put(rgbStream, siz+34, 0x07000107), "subsampling 0×1"},
		{"39 bits", put(rgbStream, siz+34, 0x26010107), "39 bits"},
		{"16 bits", put(rgbStream, siz+34, 0x0f010107), "component 0 has 16 bits, expected are at most 8"},
		{"many precincts and layers", small, "precincts and layers that need"},
		{"a box beyond the end", put(rgbFile, 12, 1<<30), "a box of 1073741824 bytes at byte 12"},
		{"a box without length", put(rgbFile, 12, 3), "a box of 3 bytes at byte 12"},
		{"no codestream", rgbFile[:32], "without a codestream"},
		{"data outside of a tile", append(rgbStream[:cod:cod], 0xff, 0x93, 0, 0, 0, 0), "a SOD marker at byte"},
	} {
		_, err := readHeader(c.src)
		if err == nil {
			var stream []byte
			var h Header
			stream, err = codestream(c.src)
			if err == nil {
				h, err = readSIZ(stream)
			}
			if err == nil {
				err = rgbConfig.check(&h, stream)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "JPEG 2000: ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if Available() == nil {
		if err := Decode(make([]byte, 1800), layers, rgbConfig); err == nil {
			t.Log("a codestream that lacks most of its layers is decoded")
		}
	}
}

// Damage is an error or other pixels, whatever the library makes of it.
func TestDamage(t *testing.T) {
	needLibrary(t)
	dst := make([]byte, 30*20*3)
	for at := range rgbStream {
		src := bytes.Clone(rgbStream)
		src[at] ^= 1 << (at % 8)
		_ = Decode(dst, src, rgbConfig)
		_ = Decode(dst, rgbStream[:at], rgbConfig)
	}
	if err := Decode(dst, rgbStream, rgbConfig); err != nil || !bytes.Equal(dst, rgbPixels()) {
		t.Errorf("afterwards: %v", err)
	}
}

// Components with fewer samples than pixels are repeated.
func TestSubsampled(t *testing.T) {
	y := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	c := []int32{20, 21, 22, 23, 24, 25}
	comps := []opjComponent{{Width: 5, Height: 3, Data: &y[0]}, {Width: 3, Height: 2, Data: &c[0]}}
	image := opjImage{Components: 2, Comps: &comps[0]}
	h := Header{Components: []Component{{8, false, 1, 1}, {8, false, 2, 2}}}
	dst := make([]byte, 30)
	if err := image.copyTo(dst, Config{Width: 5, Height: 3, Components: 2, Size: 1}, &h); err != nil {
		t.Fatal(err)
	}
	want := []byte{0, 20, 1, 20, 2, 21, 3, 21, 4, 22, 5, 20, 6, 20, 7, 21, 8, 21, 9, 22, 10, 23, 11, 23, 12, 24, 13, 24, 14, 25}
	if !bytes.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
	comps[1].Width = 2
	if err := image.copyTo(dst, Config{Width: 5, Height: 3, Components: 2, Size: 1}, &h); err == nil {
		t.Error("a component of another size is accepted")
	}
}

// FuzzHeaders reads headers alone: what is wrong with them must be found before the library sees them.
func FuzzHeaders(f *testing.F) {
	for _, s := range [][]byte{rgbStream, rgbFile, deepStream} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		h, err := readHeader(src)
		if err == nil {
			stream, _ := codestream(src)
			err = Config{Width: h.Width, Height: h.Height, Components: len(h.Components), Size: 4}.check(&h, stream)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "JPEG 2000: ") {
			t.Error(err)
		}
	})
}

// readHeader reads the size and the components of the image in src, a codestream or a JP2 file.
func readHeader(src []byte) (Header, error) {
	src, err := codestream(src)
	if err != nil {
		return Header{}, err
	}
	return readSIZ(src)
}
