//go:build !nocuda

package zarrgpu

import (
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/images"
	"strata/pkg/meter"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/tests/tiffcorpus"
)

// The tiles of TIFF files come by the way that their compression allows: raw ones straight from the file
// they share, zstd and Deflate decoded on the device, all others by the host.
func TestTIFF(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	pool := files(t, d, settings.Auto)
	straight, _ := pool.Mode()
	for name, want := range map[string]Way{
		"layout_tile_big_le.tif": GDS, "rgb_u1_contig_tile.tif": GDS, "volumetric_tiles.tif": GDS, "sparse_tile_missing.tif": GDS,
		"layout_tile_big_be.tif": Host, "zstd_u2_tile.tif": NVComp, "zlib_u2_tile.tif": NVComp, "lzw_u2_tile.tif": Host, "jpeg_gray_tile.tif": Host,
	} {
		if want == GDS && !straight {
			want = Bounce
		}
		st, _, err := images.Open(t.Context(), tiffcorpus.Write(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		a, err := zarr.OpenArray(t.Context(), st, "pages/0")
		if err != nil {
			t.Fatal(err)
		}
		counts, m := new(Counts), new(meter.Meter)
		r, err := NewReader(a, d, Options{Files: pool, Counts: counts, Meter: m})
		if err != nil {
			t.Fatal(err)
		}
		if w, why := r.Way(); w != want {
			t.Errorf("%s: by way of %v (%s), want %v", name, w, why, want)
			continue
		}
		part := a.Bounds()
		for i := range part.Start {
			part.Start[i] = part.Shape[i] / 3
			part.Shape[i] -= 2 * part.Start[i]
		}
		for _, g := range []zarr.Region{a.Bounds(), part} {
			same(t, r, s, a, g)
		}
		if counts.Fallbacks() != 0 || counts.Bytes(want) == 0 {
			t.Errorf("%s: %d bytes by %v, %d regions read again, because %q", name, counts.Bytes(want), want, counts.Fallbacks(), counts.Reasons())
		}
	}
}
