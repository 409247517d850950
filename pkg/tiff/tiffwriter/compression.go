package tiffwriter

import (
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/tiff/tilecodec"
)

// Compression selects the compression of tiles by its name on command lines.
type Compression struct {
	Name   string
	Code   int // tag 259
	Number int // level, or the quality of JPEG; 0: the usual one
}

// compressions are the names, with the least and greatest number behind the colon.
var compressions = []struct {
	name        string
	code        int
	least, most int
}{
	{"none", tilecodec.None, 0, 0}, {"raw", tilecodec.None, 0, 0}, {"zstd", tilecodec.Zstd, 1, 22}, {"deflate", tilecodec.Deflate, 1, 9},
	{"lzw", tilecodec.LZW, 0, 0}, {"packbits", tilecodec.PackBits, 0, 0}, {"jpeg", tilecodec.JPEG, 1, 100},
}

// ParseCompression parses NAME or NAME:NUMBER.
func ParseCompression(text string) (Compression, error) {
	name, number, given := strings.Cut(text, ":")
	for _, c := range compressions {
		if c.name != strings.ToLower(name) {
			continue
		}
		out := Compression{Name: c.name, Code: c.code}
		if !given {
			return out, nil
		}
		n, err := strconv.Atoi(number)
		switch {
		case c.most == 0:
			return out, fmt.Errorf("%q: %s has no level", text, c.name)
		case err != nil || n < c.least || n > c.most:
			return out, fmt.Errorf("%q: want a whole number from %d to %d behind the colon", text, c.least, c.most)
		}
		out.Number = n
		return out, nil
	}
	return Compression{}, fmt.Errorf("%q is not known (must be none, zstd, deflate, lzw, packbits or jpeg, with :LEVEL or without)", text)
}

// Apply sets a spec's compression, with the predictor for its type if one is wanted and helps.
func (c Compression) Apply(s *Spec, predictor bool) {
	s.Compression, s.Predictor = c.Code, tilecodec.PredictorNone
	if c.Code == tilecodec.JPEG {
		s.Quality = c.Number
		return
	}
	s.Level = c.Number
	if !predictor || c.Code == tilecodec.None || c.Code == tilecodec.PackBits {
		return
	}
	if s.Type.IsFloat() {
		s.Predictor = tilecodec.PredictorFloat
	} else {
		s.Predictor = tilecodec.PredictorHorizontal
	}
}
