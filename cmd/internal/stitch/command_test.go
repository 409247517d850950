package stitch

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"strata/pkg/cli/clitest"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"stitch": clitest.Of(Command), "mosaic": mosaic})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// mosaic is a program of the scripts: mosaic OUT SEED [OVERLAP] makes a phantom's
// mosaic grid of tissue without imperfections, 3 × 3 tiles of 16 × 80 × 80 voxels.
func mosaic() {
	c := phantom.Default().Ideal()
	c.Tiles, c.Tile, c.Overlap, c.FillTissue = [2]int{3, 3}, [3]int{16, 80, 80}, 0.25, true
	if err := write(c, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(c phantom.Config, args []string) (err error) {
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
