package jpeg

import (
	"bytes"
	"fmt"
	stdjpeg "image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tile is a stream that benchmarks decode.
type tile struct {
	name   string
	stream []byte
	config Config
}

// tiles makes RGB tiles. STRATA_BENCH_JPEG names a folder of streams that are used in their place.
func tiles(b *testing.B) (list []tile) {
	if dir := os.Getenv("STRATA_BENCH_JPEG"); dir != "" {
		files, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
		if err != nil {
			b.Fatal(err)
		}
		for _, file := range files {
			stream, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			h, err := ReadHeader(stream)
			if err != nil {
				b.Fatal(err)
			}
			list = append(list, tile{strings.TrimSuffix(filepath.Base(file), ".jpg"), stream, Config{Width: h.Width, Height: h.Height, Components: h.Components, Color: ToRGB}})
		}
		return list
	}
	for _, size := range []int{256, 512} {
		src := picture(size, size, 3)
		for _, quality := range []int{75, 90} {
			for name, s := range map[string][2]int{"420": {2, 2}, "444": {1, 1}} {
				stream := encoded(b, src, size, size, 3, Options{Quality: quality, Color: ToRGB, Subsampling: s})
				list = append(list, tile{fmt.Sprintf("%d_q%d_%s", size, quality, name), stream, Config{Width: size, Height: size, Components: 3, Color: ToRGB}})
			}
		}
	}
	return list
}

func BenchmarkDecode(b *testing.B) {
	decode := func(b *testing.B, c tile) {
		var d Decoder
		dst := make([]byte, c.config.Width*c.config.Height*c.config.Components)
		for b.Loop() {
			if _, err := d.Decode(background, dst, nil, c.stream, c.config); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, c := range tiles(b) {
		for _, way := range []struct {
			name string
			run  func(b *testing.B)
		}{
			{"ours", func(b *testing.B) { decode(b, c) }},
			{"scalar", func(b *testing.B) { scalar(func() { decode(b, c) }) }},
			{"libturbojpeg", func(b *testing.B) {
				withLibrary(b)
				decode(b, c)
			}},
			{"image_jpeg", func(b *testing.B) { // which does not convert to RGB
				for b.Loop() {
					if _, err := stdjpeg.Decode(bytes.NewReader(c.stream)); err != nil {
						b.Fatal(err)
					}
				}
			}},
		} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				without(b)
				b.SetBytes(int64(c.config.Width * c.config.Height * c.config.Components))
				way.run(b)
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	src := picture(512, 512, 3)
	for name, s := range map[string][2]int{"420": {2, 2}, "444": {1, 1}} {
		b.Run(name, func(b *testing.B) {
			var e Encoder
			var out []byte
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				var err error
				if out, err = e.Encode(out, src, 512, 512, 3, Options{Quality: 85, Color: ToRGB, Subsampling: s}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
