package crop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"strata/cmd/internal/zarrtool"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"crop": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command), "noise": noise})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// noise is a program of the scripts: noise OUT makes an image of 30 × 96 × 96 voxels of 2 µm that shows nothing.
func noise() {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(1, 1))
	shape := []int{30, 96, 96}
	v := make([]float32, 30*96*96)
	for i := range v {
		v[i] = float32(100 + 10*rng.NormFloat64())
	}
	w, err := ngff.Create(ctx, store.Folder(os.Args[1]), "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: shape, DType: dtype.Float32,
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{2, 2, 2}})
	if err == nil {
		if err = w.WriteTile(ctx, []int{0, 0, 0}, shape, dtype.Bytes(v)); err == nil {
			err = w.Close(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
