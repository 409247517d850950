package cli

import "testing"

func TestFew(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"also write a PNG", 16, "also write a PNG"},
		{"how far a tile may move; 0: not at all", 30, "how far a tile may move"},
		{"how far a tile may move (in voxels of level 0)", 30, "how far a tile may move"},
		{"where tiles were recorded: JSON or CSV", 30, "where tiles were recorded"},
		{"raw: no codec, and thus no time for it", 20, "raw: no codec, and…"},
		{"raw, zstd, lz4, gzip, blosc", 16, "raw, zstd, lz4…"},
		{"ångström × µm × ångström", 15, "ångström × µm…"},
		{"onlyoneverylongword", 8, ""},
		{"a b", 0, ""},
		{"", -3, ""},
	} {
		if got := few(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
