package stitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	phantomcmd "strata/cmd/internal/phantom"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/phantom"
	"strata/pkg/registration"
	"strata/pkg/tilegrid"
	"strata/pkg/zarr/store"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	stitch := clitest.Of(Command)
	clitest.Main(m, map[string]func(){"stitch": stitch, "linum-stitch-3d-refined": stitch, "linum-estimate-global-transform": stitch, "linum-stitch-motor-only": stitch, "linum-compare-stitching": stitch, "mosaic": program(mosaic), "scan": program(scan), "cuttiles": clitest.CutTiles, "phantom": clitest.Of(phantomcmd.Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// program is a program of the scripts.
func program(run func(args []string) error) func() {
	return func() {
		if err := run(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// specimen is tissue without imperfections, in tiles of 16 × 80 × 80 voxels of 2 µm in the plane.
func specimen(tiles [2]int) phantom.Config {
	c := phantom.Default().Ideal()
	c.Tiles, c.Tile, c.Overlap, c.FillTissue = tiles, [3]int{16, 80, 80}, 0.25, true
	c.Water = 0 // the middle plane shows tissue
	return c
}

// mosaic is a program of the scripts: mosaic OUT SEED [OVERLAP] makes a phantom's
// mosaic grid of tissue without imperfections, 3 × 3 tiles of 16 × 80 × 80 voxels.
func mosaic(args []string) (err error) {
	c := specimen([2]int{3, 3})
	if c.Seed, err = strconv.ParseUint(args[1], 10, 64); err != nil {
		return err
	}
	if len(args) > 2 {
		if c.Overlap, err = strconv.ParseFloat(args[2], 64); err != nil {
			return err
		}
	}
	s, err := phantom.New(c)
	if err != nil {
		return err
	}
	return s.WriteMosaic(context.Background(), store.Folder(args[0]), 0, phantom.Storage{Format: 3, Unit: "micrometer", Workers: 1, Mem: 64 << 20})
}

// scan is a program of the scripts: scan OUT ERROR makes a slide scan's mosaic grid (scan.ome.zarr) of 2 × 3 tiles of
// one plane, with a channel of noise and one of tissue, and where the stage recorded them (positions.json), with an
// error in µm.
func scan(args []string) (err error) {
	c := specimen([2]int{2, 3})
	c.DType, c.Jitter, c.Gain = dtype.Uint16, 2, 20000
	if c.Stage, err = strconv.ParseFloat(args[1], 64); err != nil {
		return err
	}
	s, err := phantom.New(c)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := s.WriteRecorded(&b, 0); err != nil {
		return err
	}
	recorded, err := registration.ReadTilePositions(&b, "recorded")
	if err != nil {
		return err
	}
	t := tilegrid.Scan{Name: "scan", Tile: [2]int{80, 80}, Voxel: [3]float64{1, 2, 2}, Channels: 2, DType: dtype.Uint16,
		Omero: &ngff.Omero{Channels: []ngff.Channel{{Label: "noise", Color: "FF0000", Window: &ngff.Window{Max: 65535, End: 65535}}, {Label: "tissue", Color: "00FF00", Window: &ngff.Window{Max: 65535, End: 65535}}}}}
	for _, p := range recorded.Tiles {
		t.Positions = append(t.Positions, [2]float64{1000 + p.Position[0], 2000 + p.Position[1]})
	}
	t.Read = func(_ context.Context, tile, _, channel, _ int, dst []byte) error {
		whole := make([]byte, c.Tile[0]*len(dst))
		if err := s.RenderTile(whole, 0, tile/3, tile%3); err != nil {
			return err
		}
		copy(dst, whole[15*len(dst):])
		if channel == 0 {
			random := rand.New(rand.NewPCG(uint64(tile), 1))
			for i := range dst {
				dst[i] = byte(1 + random.IntN(255))
			}
		}
		return nil
	}
	if err := os.MkdirAll(args[0], 0o777); err != nil {
		return err
	}
	p, err := t.Write(context.Background(), store.Folder(filepath.Join(args[0], "scan.ome.zarr")), tilegrid.Storage{Format: 3, Workers: 1, Mem: 64 << 20})
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(args[0], "positions.json"))
	if err != nil {
		return err
	}
	return errors.Join(p.Write(f), f.Close())
}
