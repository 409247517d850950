// Package czicorpus provides tests with the CZI files of this folder: 52 written by other programs, with the
// expected pixels, and broken ones that must be rejected. README.md describes them.
//
//	for _, c := range czicorpus.Files(t) {
//		f, err := czi.Open(ctx, czicorpus.Open(t, c.Name), c.Name)
//	}
package czicorpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"strata/tests/repo"
	"strata/tests/tiffcorpus"
)

// File is a file that must be readable.
type File struct {
	Name         string            `json:"file"`
	Dims         map[string][2]int `json:"dims"` // [start, end) over all sub-blocks; X, Y and M of level 0
	Rectangle    *[4]int           `json:"total_bounding_rectangle"`
	Level0       *[4]int           `json:"total_bounding_rectangle_no_pyramid"`
	Scenes       map[string][4]int `json:"scenes_bounding_rectangle_no_pyramid"`
	ChannelTypes map[string]string `json:"channel_pixel_types"`
	Attachments  []Attachment      `json:"attachments"`
	XMLSHA256    string            `json:"xml_sha256"`
	SubBlocks    []SubBlock        `json:"subblocks"`
	Composites   []Composite       `json:"composites"`
}

// SubBlock is an entry of the directory, with the sub-block that it refers to.
type SubBlock struct {
	PixelType        string            `json:"pixel_type"`
	Compression      string            `json:"compression"`
	Position         int64             `json:"file_position"`
	Pyramid          int               `json:"pyramid_type"`
	Dims             map[string][3]int `json:"dims"` // start, size, stored size
	MetadataOffset   int64             `json:"metadata_offset"`
	MetadataSize     int64             `json:"metadata_size"`
	DataOffset       int64             `json:"data_offset"`
	DataSize         int64             `json:"data_size"`
	AttachmentOffset int64             `json:"attachment_offset"`
	AttachmentSize   int64             `json:"attachment_size"`
	Expect           Expect            `json:"expect"`
}

// Attachment is a file embedded in the file.
type Attachment struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Position int64  `json:"file_position"`
	SHA256   string `json:"sha256"`
}

// Composite is an image that the vendor's library composes of several tiles.
type Composite struct {
	Name string `json:"name"`
	Args struct {
		Plane      map[string]int `json:"plane"`
		Scene      *int           `json:"scene"`
		ROI        [4]int         `json:"roi"` // x, y, width, height
		Zoom       float64        `json:"zoom"`
		Background []float64      `json:"background_pixel"`
	} `json:"args"`
	Expect Expect `json:"expect"`
}

// Expect describes the expected pixels.
type Expect struct {
	Shape  []int  `json:"shape"`
	DType  string `json:"dtype"` // numpy's
	SHA256 string `json:"sha256"`
}

// Broken is a file that must be rejected, as Must says.
type Broken struct {
	Name string `json:"file"`
	Why  string `json:"why"`
	Must string `json:"must"`

	Base  string   `json:"base"` // file that it was made from
	Bytes int      `json:"bytes"`
	Edits [][2]any `json:"edits"` // offset, bytes in hexadecimal
}

// corpus has the files that must be readable, and broken ones made from them.
var corpus = tiffcorpus.Corpus[File, Broken]{Readable: 52, Broken: 37, Load: func(m *tiffcorpus.Manifest[File, Broken]) (map[string][]byte, error) {
	data, err := tiffcorpus.Load(repo.Path("tests", "czicorpus"), m, "files.zip")
	if err != nil {
		return nil, err
	}
	for _, n := range m.Negatives {
		if n.Base == "" {
			continue
		}
		b := bytes.Clone(data[n.Base][:n.Bytes])
		for _, e := range n.Edits {
			with, err := hex.DecodeString(e[1].(string))
			if err != nil {
				return nil, err
			}
			copy(b[int(e[0].(float64)):], with)
		}
		data[n.Name] = b
	}
	return data, nil
}}

// Files returns the files that must be readable.
func Files(t testing.TB) []File { return corpus.Manifest(t).Files }

// Negatives returns the broken files.
func Negatives(t testing.TB) []Broken { return corpus.Manifest(t).Negatives }

// Bytes returns a file of the corpus by its name in the manifest.
func Bytes(t testing.TB, name string) []byte { return corpus.Bytes(t, name) }

// Write writes a file of the corpus to a temporary folder and returns its path.
func Write(t testing.TB, name string) string { return corpus.Write(t, name) }

// Open returns a file of the corpus as a source of package czi.
func Open(t testing.TB, name string) tiffcorpus.Source { return tiffcorpus.Memory(Bytes(t, name)) }

// Compare reports a test error unless the pixels, little-endian in C order, are the expected ones.
func (e Expect) Compare(t testing.TB, what string, got []byte) {
	t.Helper()
	if sum := SHA256(got); sum != e.SHA256 {
		t.Errorf("%s: pixels of %s %v have SHA-256 %s, want %s", what, e.DType, e.Shape, sum, e.SHA256)
	}
}

// SHA256 returns the digest of data as the manifest writes it.
func SHA256(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
