package phantom

import "testing"

func BenchmarkRenderTile(b *testing.B) {
	c := Default()
	c.Tile = [3]int{200, 256, 256}
	s, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 200*256*256*4)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if err := s.RenderTile(buf, 0, 1, 1); err != nil {
			b.Fatal(err)
		}
	}
}
