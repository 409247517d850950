package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkable are the codecs of --codec.
var checkable = []string{"raw", "lz4", "zstd:1", "gzip:1", "blosc-lz4", "blosc-zstd:1"}

// A flipped bit of a chunk with a checksum ends validate, a stage that reads the image whole and one that reads a part
// of it with exit code 3 and a message that names the file, wherever the bit lies, in files of chunks and in shards.
func TestChecksum(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "ph", "--tiles", "2,2", "--tile", "32,48,48", "--n_levels", "0", "-q")
	for _, codec := range checkable {
		for layout, flags := range map[string][]string{"files": nil, "shards": {"--chunks", "16,48,48", "--shard", "32,96,96"}} {
			t.Run(codec+" in "+layout, func(t *testing.T) {
				in := filepath.Join(dir, "in.ome.zarr")
				run(t, dir, "zarr-tool", append([]string{"reencode", mosaicOf("ph"), in, "--codec", codec, "--checksum", "-q", "-f"}, flags...)...)
				run(t, dir, "zarr-tool", "validate", in, mosaicOf("ph"), "-q")
				file := filepath.Join(in, "0", "c", "0", "0", "0")
				whole, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range flips(len(whole)) {
					damaged := append([]byte(nil), whole...)
					damaged[at] ^= 0x10
					if err := os.WriteFile(file, damaged, 0o666); err != nil {
						t.Fatal(err)
					}
					for _, reader := range [][]string{
						{"zarr-tool", "validate", in}, {"aip", in, "out.ome.zarr", "-f", "--no-use_gpu"}, {"zarr-tool", "cat", in + "/0", "-o", "part.npy", "-f", "--region", "0:32,40:60,40:60"},
						{"crop", in, "out.ome.zarr", "-f", "--depth", "20", "--no-use_gpu"},
					} {
						name, err := filepath.Rel(in, file)
						if err != nil {
							t.Fatal(err)
						}
						if text := fails(t, 3, dir, reader[0], append(reader[1:], "-q")...); !strings.Contains(text, name) {
							t.Errorf("byte %d of %d, %s: the message does not name %s: %s", at, len(whole), reader[0], name, text)
						}
					}
				}
				if err := os.WriteFile(file, whole, 0o666); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func mosaicOf(folder string) string { return folder + "/mosaic_grid_3d_z00.ome.zarr" }

// flips are bytes of a file to damage: at its ends, where a checksum may lie, and between.
func flips(n int) []int {
	if testing.Short() {
		return []int{n - 1}
	}
	return []int{0, 13, n / 2, n - 1}
}

// Every program that writes Zarr takes --checksum, and writes the codec behind the codecs of every array, also of
// pyramid levels and maps.
func TestChecksumEverywhere(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--slices", "2", "--tiles", "2,2", "--tile", "32,48,48")
	run(t, dir, "zarr-tool", "export", mosaic, "in/mosaic.tif", "-q")
	run(t, dir, "phantom", "raw", "--raw", "--tiles", "2,2", "--tile", "32,48,48", "-q")
	for name, line := range map[string]string{
		"phantom": "phantom OUT --tiles 2,2 --tile 32,48,48", "mosaic": "mosaic raw OUT --slice 0 --resolution -1", "aip": "aip MOSAIC OUT", "resample": "resample MOSAIC OUT --resolution 8",
		"focal": "focal MOSAIC OUT --save_map OUT-maps", "flatfield": "flatfield MOSAIC OUT", "stitch": "stitch MOSAIC OUT", "crop": "crop MOSAIC OUT --depth 50", "smooth": "smooth MOSAIC OUT --median 3",
		"beam-profile": "beam-profile MOSAIC OUT", "attenuation": "attenuation MOSAIC OUT", "normalize": "normalize MOSAIC OUT", "bias-field": "bias-field MOSAIC OUT",
		"common-space": "common-space in/slices in/shifts_xy.csv OUT", "stack": "stack in/slices in/shifts_xy.csv OUT --blend --slicing_interval_mm 0.2",
		"import": "zarr-tool import in/mosaic.tif OUT", "import levels": "zarr-tool import in/mosaic.tif OUT --keep_levels", "reencode": "zarr-tool reencode MOSAIC OUT", "ome": "zarr-tool ome MOSAIC OUT",
	} {
		t.Run(name, func(t *testing.T) {
			out := strings.ReplaceAll("o/"+name, " ", "-") + ".ome.zarr"
			words := strings.Fields(strings.NewReplacer("MOSAIC", mosaic, "OUT", out).Replace(line))
			run(t, dir, words[0], append(words[1:], "--checksum", "--zarr_format", "3", "-q")...)
			checked := 0
			for _, place := range []string{out, out + "-maps"} {
				_ = filepath.WalkDir(filepath.Join(dir, place), func(path string, e fs.DirEntry, err error) error {
					text, _ := os.ReadFile(path) // a folder has no text
					if err == nil && e.Name() == "zarr.json" && strings.Contains(string(text), `"chunk_grid"`) {
						if checked++; !strings.Contains(strings.Join(strings.Fields(string(text)), ""), `{"name":"crc32c"}]`) {
							t.Errorf("%s has no checksum", path)
						}
					}
					return nil
				})
			}
			if checked == 0 {
				t.Error("it wrote no array")
			}
			if text := fails(t, 2, dir, words[0], append(words[1:], "--checksum", "--zarr_format", "2")...); !strings.Contains(text, "--checksum needs Zarr format 3, because") {
				t.Error(text)
			}
		})
	}
}
