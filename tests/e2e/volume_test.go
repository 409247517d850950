package e2e

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// volume is an image to write as a program of long ago might: NGFF 0.4 on Zarr
// format 2, raw chunks, by hand, so that it can have what our writer refuses.
type volume struct {
	shape, chunks []int  // default: 12,32,32 in chunks of 12,16,16
	dtype         string // as in .zarray; default "<f4"
	scale         string // JSON of the voxel size; default 10, 10, 10
	unit          string // default "micrometer"; "-" leaves it out
	axes          string // default "zyx"
	value         func(z, y, x int) float64
}

// tissue has an interface at a third of the depth and structure below it.
func tissue(z, y, x int) float64 {
	if z < 4 {
		return 2 + float64((x+y)%2)
	}
	return 100 + 40*math.Sin(float64(x)/3)*math.Cos(float64(y)/4) + 5*math.Sin(float64(z*7+x*3+y*5)) - 4*float64(z)
}

func constant(v float64) func(z, y, x int) float64 {
	return func(z, y, x int) float64 { return v }
}

func (v volume) write(t *testing.T, path string) {
	t.Helper()
	def := func(p *string, d string) {
		if *p == "" {
			*p = d
		}
	}
	def(&v.dtype, "<f4")
	def(&v.scale, "10, 10, 10")
	def(&v.unit, "micrometer")
	def(&v.axes, "zyx")
	if v.shape == nil {
		v.shape = []int{12, 32, 32}
	}
	if v.chunks == nil {
		v.chunks = []int{v.shape[0], 16, 16}
	}
	if v.value == nil {
		v.value = tissue
	}
	var axes []string
	for _, a := range v.axes {
		unit := fmt.Sprintf(`, "unit": %q`, v.unit)
		if v.unit == "-" {
			unit = ""
		}
		axes = append(axes, fmt.Sprintf(`{"name": %q, "type": "space"%s}`, string(a), unit))
	}
	put := func(name string, b []byte) {
		file := filepath.Join(path, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	list := func(n []int) string { return strings.ReplaceAll(fmt.Sprint(n), " ", ", ") }
	put(".zgroup", []byte(`{"zarr_format": 2}`))
	put(".zattrs", fmt.Appendf(nil, `{"multiscales": [{"version": "0.4", "axes": [%s], "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [%s]}]}]}]}`,
		strings.Join(axes, ", "), v.scale))
	put("0/.zarray", fmt.Appendf(nil, `{"zarr_format": 2, "shape": %s, "chunks": %s, "dtype": %q, "compressor": null, "fill_value": 0, "order": "C", "filters": null, "dimension_separator": "/"}`,
		list(v.shape), list(v.chunks), v.dtype))
	extra := 3 - len(v.shape) // axes before those of the image, of one voxel
	shape, chunks := append([]int{1, 1, 1}[:extra], v.shape...), append([]int{1, 1, 1}[:extra], v.chunks...)
	count := func(d int) int { return (shape[d] + chunks[d] - 1) / chunks[d] }
	for i := range count(0) {
		for j := range count(1) {
			for k := range count(2) {
				var b []byte
				for z := i * chunks[0]; z < (i+1)*chunks[0]; z++ {
					for y := j * chunks[1]; y < (j+1)*chunks[1]; y++ {
						for x := k * chunks[2]; x < (k+1)*chunks[2]; x++ {
							if z < shape[0] && y < shape[1] && x < shape[2] {
								b = appendNumber(t, b, v.dtype, v.value(z, y, x))
							} else {
								b = appendNumber(t, b, v.dtype, 0)
							}
						}
					}
				}
				put("0/"+strings.Join([]string{strconv.Itoa(i), strconv.Itoa(j), strconv.Itoa(k)}[extra:], "/"), b)
			}
		}
	}
}

func appendNumber(t *testing.T, b []byte, dtype string, v float64) []byte {
	t.Helper()
	switch dtype {
	case "|u1", "|i1", "|b1":
		return append(b, byte(int64(v)))
	case "<u2", "<i2":
		return binary.LittleEndian.AppendUint16(b, uint16(int64(v)))
	case "<u4", "<i4":
		return binary.LittleEndian.AppendUint32(b, uint32(int64(v)))
	case "<u8", "<i8":
		return binary.LittleEndian.AppendUint64(b, uint64(int64(v)))
	case "<f2":
		return binary.LittleEndian.AppendUint16(b, 0x3c00) // 1
	case "<f4":
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	case ">f4":
		return binary.BigEndian.AppendUint32(b, math.Float32bits(float32(v)))
	case "<f8":
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	case "<c8":
		return binary.LittleEndian.AppendUint64(b, uint64(math.Float32bits(float32(v))))
	}
	t.Fatalf("no number of type %q", dtype)
	return nil
}
