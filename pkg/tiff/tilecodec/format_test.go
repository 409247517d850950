package tilecodec

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

// What cannot be decoded is refused with the tag's number, before any memory is taken.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(f *Format)
		want   string // "": nothing is wrong
	}{
		{func(f *Format) {}, ""},
		{func(f *Format) { f.Compression = 12345 }, "compression 12345 is not supported (must be none, LZW"},
		{func(f *Format) { f.Compression = 50001 }, "compression 50001 (WebP) is not supported"},
		{func(f *Format) { f.Compression = 6 }, "compression 6 (old-style JPEG) is not supported"},
		{func(f *Format) { f.Compression = 4 }, "compression 4 (CCITT Group 4 fax) is not supported"},
		{func(f *Format) { f.Width = 0 }, "0×16 pixels"},
		{func(f *Format) { f.Height = -1 }, "16×-1 pixels"},
		{func(f *Format) { f.Depth = -1 }, "each must be at least 1"},
		{func(f *Format) { f.Samples = 65536 }, "65536 samples"},
		{func(f *Format) { f.Width, f.Height = math.MaxInt32, math.MaxInt32 }, "is larger than"},
		{func(f *Format) {
			f.Width, f.Height, f.Samples, f.Depth = math.MaxInt32, math.MaxInt32, 65535, math.MaxInt32
		}, "is larger than"},
		{func(f *Format) { f.Compression, f.Width, f.Height = LZW, 1<<16, 1<<16 }, "is larger than 4294967295 bytes"},
		{func(f *Format) { f.Type = dtype.Invalid }, "type invalid"},
		{func(f *Format) { f.Type = dtype.Bool }, "type bool"},
		{func(f *Format) { f.Bits = 17 }, "17 bits per sample of uint8"},
		{func(f *Format) { f.Bits, f.Type = 12, dtype.Int16 }, "12 bits per sample of int16"},
		{func(f *Format) { f.Bits, f.Type = 24, dtype.Float64 }, "24 bits per sample of float64"},
		{func(f *Format) { f.Bits, f.Type, f.Compression, f.Predictor = 24, dtype.Float32, LZW, 3 }, "predictor 3 with samples of 24 bits"},
		{func(f *Format) { f.Bits = 4 }, ""},
		{func(f *Format) { f.Compression, f.Predictor = LZW, 2 }, ""},
		{func(f *Format) { f.Compression, f.Predictor, f.Bits = LZW, 2, 4 }, "predictor 2 with samples of 4 bits"},
		{func(f *Format) { f.Compression, f.Predictor, f.Type = LZW, 2, dtype.Complex64 }, "predictor 2 with samples of 64 bits, complex64"},
		{func(f *Format) { f.Compression, f.Predictor = Deflate, 3 }, "predictor 3, for floating point numbers, with samples of uint8"},
		{func(f *Format) { f.Compression, f.Predictor = Zstd, 34892 }, "predictor 34892 is not supported"},
		{func(f *Format) { f.Predictor = 3 }, ""}, // not compressed: libtiff takes no notice either
		{func(f *Format) { f.FillOrder = 3 }, "fill order 3"},
		{func(f *Format) { f.Compression, f.Type = JPEG, dtype.Uint16 }, "JPEG with samples of 16 bits"},
		{func(f *Format) { f.Compression, f.Samples = JPEG, 5 }, "JPEG with 5 samples"},
		{func(f *Format) { f.Compression, f.Width = JPEG, 65536 }, "65536×16 pixels"},
		{func(f *Format) { f.Compression, f.Type = JPEG2000, dtype.Float32 }, "JPEG 2000 with samples of float32"},
		{func(f *Format) { f.Photometric, f.Samples = 6, 3 }, ""},
		{func(f *Format) { f.Photometric, f.Samples, f.Subsampling = 6, 3, [2]int{3, 1} }, "YCbCr subsampling 3×1"},
		{func(f *Format) { f.Photometric, f.Samples, f.Type = 6, 3, dtype.Uint16 }, "YCbCr of 16 bits"},
		{func(f *Format) { f.Photometric, f.Subsampling = 6, [2]int{2, 1} }, "separate planes of YCbCr with subsampling 2×1"},
		{func(f *Format) { f.Photometric, f.Samples, f.Compression, f.Predictor = 6, 3, LZW, 2 }, "YCbCr subsampling 2×2 with predictor 2"},
	} {
		f := Format{Compression: None, Type: dtype.Uint8, Width: 16, Height: 16, Photometric: 1}
		c.change(&f)
		err := f.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", f, err, c.want)
		}
		if err != nil {
			if got := f.Decode(t.Context(), new(Scratch), nil, nil, 1); got == nil || got.Error() != err.Error() {
				t.Errorf("%+v: Decode says %v", f, got)
			}
		}
	}
}

func TestFormatInJSON(t *testing.T) {
	f := Format{Compression: Zstd, Predictor: 3, Type: dtype.Float32, Samples: 3, Width: 256, Height: 128, BigEndian: true, Photometric: 6,
		Subsampling: [2]int{2, 1}, Tables: []byte{1, 2}}
	b, err := json.Marshal(f)
	want := `{"compression":50000,"predictor":3,"data_type":"float32","samples":3,"width":256,"height":128,"big_endian":true,"photometric":6,` +
		`"subsampling":[2,1],"tables":"AQI="}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	var got Format
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCheckEncode(t *testing.T) {
	for _, c := range []struct {
		change func(f *Format)
		want   string
	}{
		{func(f *Format) { f.Compression = LZMA }, "compression 34925 can be read, not written"},
		{func(f *Format) { f.Compression = JPEG2000 }, "compression 34712 can be read, not written"},
		{func(f *Format) { f.Bits = 1 }, "samples of 1 bits can be read"},
		{func(f *Format) { f.FillOrder = 2 }, "fill order 2 can be read"},
		{func(f *Format) { f.Photometric, f.Samples = 6, 3 }, "photometric interpretation 6"},
		{func(f *Format) { f.Compression, f.Level = Deflate, 10 }, "level 10 of Deflate"},
		{func(f *Format) { f.Compression, f.Level = Zstd, 23 }, "level 23 of Zstd"},
		{func(f *Format) { f.Compression, f.Quality = JPEG, 101 }, "JPEG quality 101"},
	} {
		f := Format{Compression: None, Type: dtype.Uint8, Width: 16, Height: 16, Photometric: 1}
		c.change(&f)
		if err := f.CheckEncode(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", f, err, c.want)
		}
	}
}
