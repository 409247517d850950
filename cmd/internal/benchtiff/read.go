package benchtiff

import (
	"context"
	_ "embed"
	"slices"
	"strconv"

	"strata/cmd/internal/benchkit"
	"strata/cmd/internal/benchzarr"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
)

//go:embed peers.py
var peersScript string

// backends returns all ways to read a level, in the order of the table.
var backends = []string{"host", "direct", "mmap", inPlace, tilesAlone, benchzarr.Pool, "host-device", "bounce", "gds", "nvcomp"}

var tool = benchzarr.Tool{
	Name: "bench-tiff", Script: peersScript, Tiles: true, Lenient: true, Backends: backends, Reader: tileReaderOf, Floors: []string{tilesAlone},
	Can: func(backend, op string) bool { return op == benchzarr.OpFull || !slices.Contains(ownWays, backend) },
	Peers: []benchkit.PeerKind{
		{Key: "tifffile", Name: "tifffile", Packages: "numpy tifffile imagecodecs zarr"},
		{Key: "cucim", Name: "cuCIM", Packages: "numpy cucim-cu12"},
		{Key: "openslide", Name: "OpenSlide", Packages: "numpy openslide-python openslide-bin"},
		{Key: "tensorstore", Name: "tensorstore", Packages: "numpy tensorstore"},
		{Key: "kvikio", Name: "KvikIO", Packages: "numpy tifffile kvikio-cu12"},
		{Key: "kvikio+gpu", Name: "KvikIO to a GPU", Device: true, Packages: "numpy tifffile kvikio-cu12 cupy-cuda12x"},
	},
}

func readCommand() *cli.Command {
	return &cli.Command{
		Name:  "read",
		Usage: "measure reading a pyramid level, and regions of it, in many ways",
		Description: "Each way reads the level once to compare its samples with those of the first way, and then --reps times, in\n" +
			"alternation with the other ways. The table has medians; IOPS are tiles per second. The ways (--vary backend=...)\n" +
			"are:\n\n" +
			"host, direct and mmap read into one image in memory: through the page cache, past it (O_DIRECT), or\n" +
			"memory-mapped.\n\n" +
			"preadv reads uncompressed tiles straight to their rows of the image by preadv: the time that the operating\n" +
			"system alone takes.\n\n" +
			"tiles reads uncompressed tiles by preadv into --in_flight reused buffers, without making an image.\n\n" +
			"pool reads tiles by the file layer (pkg/filelayer) into host memory, in tasks of --task_size with --in_flight buffers,\n" +
			"then copies them to their rows.\n\n" +
			"host-device, bounce, gds and nvcomp read into a GPU: decoded on the host, raw through host memory, by GPUDirect\n" +
			"Storage, or decoded on the GPU.\n\n" +
			"--vary takes the axes backend, threads, in_flight, task_size and cache; its default is backend=all threads=1,N.\n" +
			"--preset cucim is backend=pool,bounce,gds task_size=32KiB,128KiB,512KiB,1MiB,4MiB in_flight=8,32,128,256: the\n" +
			"axes of cuCIM's benchmark_read.py.",
		Args: []cli.Arg{{Name: "FILE", Usage: "TIFF file: path, or http(s):// or s3:// URL"}},
		Flags: append(append(choosing(), []cli.Flag{
			{Name: "ops", Kind: cli.Strings, Default: "full,rand", Check: benchzarr.Among(benchzarr.OpFull, benchzarr.OpRandom), Usage: "operations to measure: full reads the whole level, rand reads regions at random places"},
			{Name: "regions", Kind: cli.Int, Default: "100", Check: cli.Between(1, 1e6), Usage: "number of regions that --ops rand reads"},
			{Name: "size", Kind: cli.Int, Default: "256", Check: cli.Between(1, 1e6), Usage: "width and height in pixels of the regions that --ops rand reads"},
			{Name: "seed", Kind: cli.Int, Default: "1", Check: cli.Between(0, 1<<53), Usage: "seed of the random places of --ops rand, from 0"},
			{Name: "to", Default: benchzarr.ToHost, Choices: []string{benchzarr.ToHost, benchzarr.ToDevice}, Usage: "destination of the samples, for ways that can read into memory (host) and into a GPU (device)"},
			{Name: "in_flight", Kind: cli.Int, Note: "same as --threads; 2 regions for a GPU; the number that suits a server", Check: cli.Between(1, 4096), Usage: "number of tiles in work at a time: buffers of pool and tiles, regions on their way to a GPU"},
			{Name: "vary", Kind: cli.Strings, Value: "AXIS=VALUE,...", Note: "backend=all threads=1,N", Usage: "settings to vary, such as backend=host,direct or threads=1,2,4: backend, threads, in_flight, task_size, cache"},
			{Name: "preset", Choices: []string{"cucim"}, Usage: "vary the settings that cuCIM's benchmark_read.py varies"},
		}...), measuring("5")...),
		Shared:   cli.GPU | cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-tiff read scan.tif --peers", Usage: "all ways, beside other programs"},
			{Command: "bench-tiff read scan.tif --vary backend=host,direct --cache cold --ops full", Usage: "from the storage device"},
			{Command: "bench-tiff read scan.svs --level 1 --ops rand --regions 1000 --size 512 --vary threads=1,2,4", Usage: "patches for training"},
			{Command: "bench-tiff read scan.tif --preset cucim --html read.html", Usage: "task sizes and numbers of buffers, with plots"},
		},
		Run: cli.Accelerated(stage.GPU, runRead),
	}
}

func runRead(ctx context.Context, r *cli.Run) error {
	axes, err := benchzarr.ParseAxes(r.Strings("vary"))
	if err != nil {
		return err
	}
	t, _, err := look(ctx, r, r.Arg("FILE"))
	if err != nil {
		return err
	}
	usual := func(name string, values ...string) {
		if !slices.ContainsFunc(axes, func(a benchzarr.Axis) bool { return a.Name == name }) {
			axes = append(axes, benchzarr.Axis{Name: name, Values: values})
		}
	}
	switch {
	case r.String("preset") == "cucim":
		usual("backend", benchzarr.Pool, "bounce", "gds")
		usual("task_size", "32KiB", "128KiB", "512KiB", "1MiB", "4MiB")
		usual("in_flight", "8", "32", "128", "256")
	case !r.IsSet("vary") && !r.IsSet("backend"):
		usual("backend", "all")
		usual("threads", slices.Compact([]string{"1", strconv.Itoa(r.Options.Threads)})...)
	}
	if r.Bool("cold") {
		usual("cache", "cold")
	}
	c := benchzarr.Choice{Edge: r.Int("size"), Count: r.Int("regions"), Seed: uint64(r.Int("seed")), Part: r.Options.Mem / 2}
	return benchzarr.Sweep(ctx, r, tool, t, axes, r.Strings("ops"), c)
}
