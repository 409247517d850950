// Package tiffcorpus provides tests with the TIFF files of this folder: 120 written by other programs, with the
// expected pixels, and broken ones that must be rejected. README.md describes them.
//
//	for _, c := range tiffcorpus.Files(t) {
//		f, err := tiff.Open(ctx, c.Source(t), c.Name)
//	}
package tiffcorpus

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"strata/tests/repo"
)

// File is a file that must be readable.
type File struct {
	Name      string     `json:"file"`
	ByteOrder string     `json:"byte_order"`
	Group     string     `json:"group"` // "core", "optional codec" or "optional layout"
	Tolerance *Tolerance `json:"tolerance"`
	Big       bool       `json:"bigtiff"`
	Pages     []Page     `json:"pages"`
	Series    []Series   `json:"series"`
	OMESeries []Series   `json:"ome_series"`
	ImageJ    *Series    `json:"imagej"`
	OpenSlide *Slide     `json:"openslide"`
}

// Tolerance is the maximum difference of samples from the expected ones.
type Tolerance struct{ Max, Mean float64 }

// Page describes a directory of the file.
type Page struct {
	Offset       int64           `json:"ifd_offset"`
	Width        int             `json:"width"`
	Height       int             `json:"height"`
	Samples      int             `json:"samples"`
	Bits         json.RawMessage `json:"bits"`
	Compression  int             `json:"compression"`
	Predictor    int             `json:"predictor"`
	Photometric  int             `json:"photometric"`
	Planar       int             `json:"planar"`
	SubfileType  int             `json:"subfiletype"`
	Tiled        bool            `json:"tiled"`
	Tile         []int           `json:"tile"`
	RowsPerStrip int             `json:"rows_per_strip"`
	Offsets      []int64         `json:"offsets"`
	Counts       []int64         `json:"byte_counts"`
	Description  string          `json:"description"`
	Expect       Expect          `json:"expect"`
	Sub          []Page          `json:"subifds"`
}

// Expect describes the expected pixels of a page.
type Expect struct {
	Npy    string `json:"npy"`
	Shape  []int  `json:"shape"`
	DType  string `json:"dtype"` // numpy's
	SHA256 string `json:"sha256"`
}

// Series is an image in the terms of tifffile.
type Series struct {
	Name   string  `json:"name"`
	Axes   string  `json:"axes"`
	Shape  []int   `json:"shape"`
	Levels [][]int `json:"levels"`
}

// Slide is OpenSlide's description of a file.
type Slide struct {
	Levels     [][2]int          `json:"level_dimensions"` // width, height
	MPP        string            `json:"mpp_x"`
	Objective  string            `json:"objective"`
	Associated map[string][2]int `json:"associated"`
	Region     Expect            `json:"region_13_21_200x150"`
}

// Broken is a file that must be rejected, as Must says.
type Broken struct {
	Name string `json:"file"`
	Why  string `json:"why"`
	Must string `json:"must"`
}

// corpus has the files that must be readable, and broken ones.
var corpus = Corpus[File, Broken]{Readable: 120, Broken: 43, Load: func(m *Manifest[File, Broken]) (map[string][]byte, error) {
	return Load(repo.Path("tests", "tiffcorpus"), m, "files.zip", "neg.zip", "expected.zip")
}}

// Load reads manifest.json of a folder into manifest, and returns the files in its zip files by their names.
func Load(dir string, manifest any, zips ...string) (map[string][]byte, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, manifest); err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, name := range zips {
		z, err := zip.OpenReader(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			if data[f.Name], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}

// Files returns the files that must be readable.
func Files(t testing.TB) []File { return corpus.Manifest(t).Files }

// Negatives returns the broken files.
func Negatives(t testing.TB) []Broken { return corpus.Manifest(t).Negatives }

// Bytes returns a file of the corpus by its name in the manifest.
func Bytes(t testing.TB, name string) []byte { return corpus.Bytes(t, name) }

// Write writes a file of the corpus to a temporary folder and returns its path.
func Write(t testing.TB, name string) string { return corpus.Write(t, name) }

// Source is a file in memory.
type Source struct{ *bytes.Reader }

// Open returns a file of the corpus as a source of package tiff.
func Open(t testing.TB, name string) Source { return Memory(Bytes(t, name)) }

// Memory returns a source for data in memory.
func Memory(b []byte) Source { return Source{bytes.NewReader(b)} }

// ReadAt reads a part of the file.
func (s Source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.ReadAt(p, off)
}

// Close does nothing.
func (s Source) Close() error { return nil }

// Compare reports a test error unless samples, little-endian in C order, are the expected ones of a page of a
// file.
func (e Expect) Compare(t testing.TB, c File, got []byte) {
	t.Helper()
	if c.Tolerance == nil {
		if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != e.SHA256 {
			t.Errorf("%s: samples have SHA-256 %x, want %s", e.Npy, sum, e.SHA256)
		}
		return
	}
	npy := Bytes(t, e.Npy)
	want := npy[len(npy)-len(got):] // all with a tolerance are bytes
	worst, sum := 0, 0
	for i := range got {
		d := int(got[i]) - int(want[i])
		d = max(d, -d)
		worst, sum = max(worst, d), sum+d
	}
	if mean := float64(sum) / float64(len(got)); float64(worst) > c.Tolerance.Max || mean > c.Tolerance.Mean {
		t.Errorf("%s: samples are up to %d and in the mean %.2f from those expected (at most %v and %v)", e.Npy, worst, mean, c.Tolerance.Max, c.Tolerance.Mean)
	}
}
