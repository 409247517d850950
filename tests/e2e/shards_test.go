package e2e

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// sharded are stages that write shards: of many chunks, which several workers finish in any order.
var sharded = map[string][]string{
	"aip":      {mosaic, "o/out.ome.zarr", "--chunks", "24,24", "--shard", "96,96"},
	"resample": {mosaic, "o/out.ome.zarr", "--resolution", "6", "--chunks", "19,8,8", "--shard", "19,32,32"},
	"focal":    {mosaic, "o/out.ome.zarr", "--chunks", "16,24,24", "--shard", "32,96,96"},
	"crop":     {mosaic, "o/out.ome.zarr", "--depth", "200", "--chunks", "32,24,24", "--shard", "32,96,96"},
	"smooth":   {mosaic, "o/out.ome.zarr", "--median", "3", "--chunks", "16,24,24", "--shard", "32,96,96"},
	"stitch":   {mosaic, "o/out.ome.zarr", "--estimate", "--chunks", "16,24,24", "--shard", "32,96,96"},
	"stack": {"in/slices", "in/shifts_xy.csv", "o/out.ome.zarr", "--blend", "--slicing_interval_mm", "0.2", "--pyramid_resolutions", "10,25",
		"--chunks", "8,16,16", "--shard", "16,32,32"},
	"zarr-tool": {"ome", mosaic + "/0", "o/out.ome.zarr", "--chunks", "16,24,24", "--shard", "32,96,96", "--n_levels", "3"},
}

// Shards have the same bytes however many workers fill them and however little memory
// chunks have that come before their turn, also with codecs that make chunks of fixed size.
func TestShardsDoNotDependOnWorkers(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--slices", "2", "--tiles", "4,4", "--tile", "32,48,48")
	for name, args := range sharded {
		t.Run(name, func(t *testing.T) {
			for _, codec := range []string{"zstd:1", "raw"} {
				var first map[string]string
				for i, c := range [][]string{{"1", "256MiB"}, {"3", "24MiB"}, {"8", "24MiB"}, {"8", "512MiB"}, {"5", "512MiB"}} {
					line := slices.Concat(args, []string{"--codec", codec, "-f", "-q", "-j", c[0], "--mem", c[1]})
					if name != "zarr-tool" && name != "smooth" {
						line = append(line, "--no-use_gpu")
					}
					run(t, dir, name, line...)
					sameOutputs(t, dir, &first, i, c)
				}
			}
		})
	}
}

// sameOutputs compares what lies in dir/o with what the first run left there.
func sameOutputs(t *testing.T, dir string, first *map[string]string, i int, of []string) {
	t.Helper()
	got := outputs(t, dir, true)
	if err := os.RemoveAll(dir + "/o"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/o", 0o777); err != nil {
		t.Fatal(err)
	}
	if i == 0 {
		*first = got
		return
	}
	for name, content := range *first {
		if got[name] != content {
			t.Errorf("%v: %s is another file", of, name)
		}
	}
	if len(got) != len(*first) {
		t.Errorf("%v: %q, want %q", of, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(*first)))
	}
}

// output runs a command that must succeed.
func output(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}
