package tilecodec

import (
	"bytes"
	"testing"

	"strata/pkg/dtype"
)

// FuzzDecode decodes anything as a tile of any format: there is an error or there are samples, and no byte beyond them.
// What can be encoded comes back.
func FuzzDecode(f *testing.F) {
	for _, s := range loadStreams(f) {
		c := s.Format
		f.Add(s.Stored, c.Compression, c.Predictor, uint8(c.Type), uint8(c.Bits), uint8(c.Samples), uint8(c.Width), uint8(c.Height), c.BigEndian, c.FillOrder,
			c.Photometric)
	}
	var scratch Scratch
	f.Fuzz(func(t *testing.T, src []byte, compression, predictor int, typ, bits, samples, width, height uint8, big bool, fill, photometric int) {
		c := Format{Compression: compression, Predictor: predictor, Type: dtype.Type(typ), Bits: int(bits), Samples: int(samples), Width: int(width),
			Height: int(height), BigEndian: big, FillOrder: fill, Photometric: photometric}
		if c.Check() != nil {
			return
		}
		n := c.Bytes()
		dst := bytes.Repeat([]byte{0xa5}, n+32)
		err := c.Decode(t.Context(), &scratch, dst[:n:n], src, 1)
		if !bytes.Equal(dst[n:], bytes.Repeat([]byte{0xa5}, 32)) {
			t.Fatalf("%+v: bytes behind the tile", c)
		}
		if err != nil || c.CheckEncode() != nil {
			return
		}
		stored, err := c.Encode(&scratch, nil, dst[:n])
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if _, hi := c.EncodedSize(); len(stored) > hi {
			t.Fatalf("%+v: %d bytes, at most %d were expected", c, len(stored), hi)
		}
		again := make([]byte, n)
		if err := c.Decode(t.Context(), &scratch, again, stored, c.rows()); err != nil || c.family() != JPEG && !bytes.Equal(again, dst[:n]) {
			t.Fatalf("%+v: does not come back: %v", c, err)
		}
	})
}
