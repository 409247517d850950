package view

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// sparse writes an image of uint16 with levels down to one chunk, of which only chunks along the middle of each level
// are stored.
func sparse(b *testing.B, shape [3]int, chain string) string {
	b.Helper()
	const side = 64
	ctx := context.Background()
	dir := filepath.Join(b.TempDir(), "image.ome.zarr")
	st := store.Folder(dir)
	var datasets []string
	codecs, err := codec.FromFlag(chain, dtype.Uint16, 3)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]uint16, side*side*side)
	for i := range data {
		data[i] = uint16(i*2654435761>>20) & 0xfff
	}
	for k := 0; ; k++ {
		key := fmt.Sprint(k)
		scale := float64(int(1) << k)
		datasets = append(datasets, fmt.Sprintf(`{"path":%q,"coordinateTransformations":[{"type":"scale","scale":[%g,%g,%g]}]}`, key, scale, scale, scale))
		if k == 0 { // the group first
			if _, err := zarr.CreateGroup(ctx, st, "", 3, nil); err != nil {
				b.Fatal(err)
			}
		}
		a, err := zarr.CreateArray(ctx, st, key, zarr.Spec{Format: 3, Shape: shape[:], Chunks: []int{side, side, side}, DType: dtype.Uint16, Codecs: codecs, Separator: "/"}, zarr.Workers(1))
		if err != nil {
			b.Fatal(err)
		}
		last := true
		for d := range shape {
			last = last && shape[d] <= side
		}
		middle := [3]int{shape[0] / side / 2, shape[1] / side / 2, shape[2] / side / 2}
		for i := range 512 {
			at := []int{middle[0] + i/64%8 - 4, middle[1] + i/8%8 - 4, middle[2] + i%8 - 4}
			if at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0]*side >= shape[0] || at[1]*side >= shape[1] || at[2]*side >= shape[2] {
				continue
			}
			r, err := a.ChunkRegion(at)
			if err != nil {
				b.Fatal(err)
			}
			if err := a.WriteChunk(ctx, at, dtype.Bytes(data[:r.Shape[0]*r.Shape[1]*r.Shape[2]])); err != nil {
				b.Fatal(err)
			}
		}
		if last {
			break
		}
		for d := range shape {
			shape[d] = max(1, shape[d]/2)
		}
	}
	text := `{"version":"0.5","multiscales":[{"axes":[{"name":"z","type":"space","unit":"micrometer"},{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space","unit":"micrometer"}],"datasets":[` + strings.Join(datasets, ",") + `]}]}`
	g, err := zarr.OpenGroup(ctx, st, "")
	if err == nil {
		err = g.SetAttributes(ctx, map[string]any{"ome": json.RawMessage(text)})
	}
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkFirstPicture measures the time from the command to the first picture of a sparse image of a terabyte: what
// the page asks for is there.
func BenchmarkFirstPicture(b *testing.B) {
	dir := sparse(b, [3]int{4096, 12288, 12288}, "zstd:1") // 1.2e12 bytes
	for b.Loop() {
		page, _, _ := serveProcess(b, nil, dir)
		for _, what := range []string{"", "main.js", "api/view", "api/images/0", "api/images/0/statistics", "api/images/0/tile?level=5&plane=xy&at=64&row=0&col=0",
			"api/images/0/tile?level=5&plane=xz&at=192&row=0&col=0", "api/images/0/tile?level=5&plane=yz&at=192&row=0&col=0"} {
			if code, body := get(b, page+what); code != 200 {
				b.Fatalf("%s: %d %s", what, code, body)
			}
		}
	}
}

// BenchmarkTile measures the time of tiles of 256 × 256 voxels at places that leave the cache behind, by the median and
// the last percent, and the resident memory of the viewer after all of them.
func BenchmarkTile(b *testing.B) {
	for _, chain := range []string{"raw", "zstd:1", "blosc-zstd:1"} {
		b.Run(chain, func(b *testing.B) {
			dir := sparse(b, [3]int{4096, 12288, 12288}, chain)
			for b.Loop() {
				page, cmd, _ := serveProcess(b, nil, dir)
				var times []time.Duration
				for i := range 256 { // the middle of level 0, whose chunks are stored, in steps that leave the cache behind
					at := map[string]int{"xy": 2048 - 256 + (i*67)%512, "xz": 6144 - 256 + (i*67)%512, "yz": 6144 - 256 + (i*67)%512}
					plane := []string{"xy", "xz", "yz"}[i%3]
					row, col := map[string]int{"xy": 23, "xz": 7, "yz": 23}[plane]+i/3%2, map[string]int{"xy": 23, "xz": 23, "yz": 7}[plane]+i/6%2
					began := time.Now()
					if code, body := get(b, fmt.Sprintf("%sapi/images/0/tile?level=0&plane=%s&at=%d&row=%d&col=%d", page, plane, at[plane], row, col)); code != 200 {
						b.Fatalf("%d %s", code, body)
					}
					times = append(times, time.Since(began))
				}
				slices.Sort(times)
				b.ReportMetric(times[len(times)/2].Seconds()*1000, "ms/tile")
				b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "ms/99%")
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
				if err != nil {
					b.Fatal(err)
				}
				for line := range strings.Lines(string(status)) {
					var kib float64
					if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
						b.ReportMetric(kib/1024, "MiB-peak")
					}
				}
			}
		})
	}
}
