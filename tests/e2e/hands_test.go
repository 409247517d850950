package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Where memory holds a chunk or two, all processors share those: at --mem 512MiB, with chunks of 105 MB, at least ten
// pieces are in hand at once on sixteen processors, and the output has the same bytes as by one.
func TestProcessorsShareChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("tiles of 105 MB")
	}
	dir := t.TempDir()
	for _, codec := range []string{"zstd:3", "blosc-lz4"} {
		in := "m-" + codec
		run(t, dir, "phantom", "made", "--slices", "1", "--tiles", "1,2", "--tile", "200,512,512", "--chunks", "200,512,512", "--dtype", "uint16", "--codec", codec, "-q", "--overwrite")
		if err := os.Rename(dir+"/made/mosaic_grid_3d_z00.ome.zarr", dir+"/"+in); err != nil {
			t.Fatal(err)
		}
		for _, stage := range []string{"aip", "focal", "crop --depth 300", "stitch", "resample"} {
			t.Run(stage+" "+codec, func(t *testing.T) {
				words := strings.Fields(stage)
				made := map[int]map[string]string{}
				for _, cores := range []int{1, 16} {
					if err := os.RemoveAll(dir + "/o"); err != nil {
						t.Fatal(err)
					}
					args := append([]string{in, "o/out.ome.zarr"}, words[1:]...)
					if err := os.Mkdir(dir+"/o", 0o777); err != nil {
						t.Fatal(err)
					}
					run(t, dir, words[0], append(args, "-q", "--no-use_gpu", "--mem", "512MiB", "-j", fmt.Sprint(cores), "--report", "r.json", "--overwrite")...)
					r := readRecord(t, dir+"/r.json")
					if cores > 1 && r.Workers < 10 {
						t.Errorf("%d pieces were in hand at once, want 10", r.Workers)
					}
					t.Logf("-j %d: %d at once, %d MiB resident, all would need %d MiB", cores, r.Workers, r.PeakResidentBytes>>20, r.MemForAll>>20)
					if most := int64(768 << 20); r.PeakResidentBytes > most {
						t.Errorf("-j %d: %d bytes were resident, at most %d are promised", cores, r.PeakResidentBytes, most)
					}
					made[cores] = outputs(t, dir, true)
					delete(made[cores], "r.json")
				}
				for name := range made[1] {
					if made[1][name] != made[16][name] && !strings.HasSuffix(name, ".json") {
						t.Errorf("%s depends on the number of processors", name)
					}
				}
			})
		}
	}
}
