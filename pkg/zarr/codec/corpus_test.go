package codec

import (
	"archive/zip"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

// chunk is a stored object of the conformance corpus with what its array's
// metadata say about it.
type chunk struct {
	array string
	key   string
	chain Chain
	data  []byte
	size  int  // of the decoded chunk
	big   bool // elements are most significant byte first
}

// corpusFiles reads an archive of the corpus into memory, keyed by path.
func corpusFiles(t testing.TB, archive string) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join("..", "..", "..", "tests", "corpus", archive))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = b
	}
	return files
}

// chunksV2 lists the chunks of the v2 arrays of an archive whose path contains
// part and whose codecs parse; reject gets the others.
func chunksV2(t testing.TB, files map[string][]byte, part string, reject func(array string, err error)) []chunk {
	t.Helper()
	var out []chunk
	for name, meta := range files {
		array, ok := strings.CutSuffix(name, "/.zarray")
		if !ok || !strings.Contains(name, part) {
			continue
		}
		var m struct {
			Shape, Chunks []int
			Dtype         string
			Filters       []json.RawMessage
			Compressor    json.RawMessage
		}
		if json.Unmarshal(meta, &m) != nil {
			continue
		}
		elem, big, err := dtype.ParseTypestr(m.Dtype)
		if err != nil {
			continue
		}
		chain, err := ParseChainV2(m.Filters, m.Compressor, elem)
		if err != nil {
			if reject != nil {
				reject(array, err)
			}
			continue
		}
		size := elem.Size()
		for _, n := range m.Chunks {
			size *= n
		}
		for key, data := range files {
			if rest, ok := strings.CutPrefix(key, array+"/"); ok && !strings.Contains(rest, ".z") {
				out = append(out, chunk{array, rest, chain, data, size, big})
			}
		}
	}
	return out
}

// chunksV3 is chunksV2 for v3 arrays whose codecs behind "bytes" are all of this
// package.
func chunksV3(t testing.TB, files map[string][]byte, part string, reject func(array string, err error)) []chunk {
	t.Helper()
	var out []chunk
next:
	for name, meta := range files {
		array, ok := strings.CutSuffix(name, "/zarr.json")
		if !ok || !strings.Contains(name, part) {
			continue
		}
		type named struct {
			Name          string
			Configuration json.RawMessage
		}
		var m struct {
			DataType  string `json:"data_type"`
			ChunkGrid struct {
				Configuration struct {
					ChunkShape []int `json:"chunk_shape"`
				}
			} `json:"chunk_grid"`
			Codecs []named
		}
		if json.Unmarshal(meta, &m) != nil {
			continue
		}
		elem, err := dtype.Parse(m.DataType)
		if err != nil || len(m.Codecs) == 0 {
			continue
		}
		var chain Chain
		big := false
		for _, c := range m.Codecs {
			switch c.Name {
			case "bytes":
				big = strings.Contains(string(c.Configuration), "big")
				continue
			case "transpose":
				continue
			case "sharding_indexed":
				continue next
			}
			k, err := ParseV3(c.Name, c.Configuration, elem)
			if err != nil {
				if reject != nil {
					reject(array, err)
				}
				continue next
			}
			chain = append(chain, k)
		}
		size := elem.Size()
		for _, n := range m.ChunkGrid.Configuration.ChunkShape {
			size *= n
		}
		for key, data := range files {
			if rest, ok := strings.CutPrefix(key, array+"/"); ok && !strings.HasSuffix(rest, ".json") {
				out = append(out, chunk{array, rest, chain, data, size, big})
			}
		}
	}
	return out
}

// Every chunk that other implementations wrote decodes to its full length, and
// what we encode from that decodes to the same bytes. (That the bytes are the
// right ones is compared by package zarr's test of the whole corpus.)
func TestCorpusChunks(t *testing.T) {
	s := NewScratch()
	bad := func(array string, err error) { t.Errorf("%s: %v", array, err) }
	chunks := chunksV2(t, corpusFiles(t, "v2.zip"), "", bad)
	chunks = append(chunks, chunksV3(t, corpusFiles(t, "v3.zip"), "", bad)...)
	if len(chunks) < 300 {
		t.Fatalf("only %d chunks", len(chunks))
	}
	for _, c := range chunks {
		got := make([]byte, c.size)
		if err := c.chain.Decode(s, got, c.data); err != nil {
			t.Errorf("%s/%s: %v", c.array, c.key, err)
			continue
		}
		if c.chain.ReadOnly() != nil {
			continue
		}
		encoded, err := c.chain.Encode(s, nil, got)
		if err != nil {
			t.Errorf("%s/%s: encode: %v", c.array, c.key, err)
			continue
		}
		if lo, hi := c.chain.EncodedSize(len(got)); len(encoded) < lo || len(encoded) > hi {
			t.Errorf("%s/%s: encoded to %d bytes, not %d to %d", c.array, c.key, len(encoded), lo, hi)
		}
		again := make([]byte, c.size)
		if err := c.chain.Decode(s, again, encoded); err != nil {
			t.Errorf("%s/%s: decode of our own: %v", c.array, c.key, err)
		} else if string(again) != string(got) {
			t.Errorf("%s/%s: our own decodes to other bytes", c.array, c.key)
		}
	}
}
