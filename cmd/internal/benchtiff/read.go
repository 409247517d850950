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

// backends are all ways to read a level, in the order of the table.
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
		Usage: "reads a level of a file in many ways, and regions of it",
		Description: "Each way reads the level once to check its samples against the first one's, and then --reps times, taking turns with\n" +
			"the others. The table has medians; IOPS are tiles per second. Ways (--vary backend=...):\n\n" +
			"host, direct, mmap   into one image in memory: through the page cache, past it (O_DIRECT), mapped\n" +
			"preadv               the same of uncompressed tiles, straight to their rows by preadv: what the system alone takes\n" +
			"tiles                uncompressed tiles by preadv, --in_flight at a time into buffers that are used again: no image is made\n" +
			"pool                 tiles by pkg/gds with host memory, in tasks of --task_size with --in_flight buffers, then to their rows\n" +
			"host-device, bounce, gds, nvcomp   into a GPU: decoded by the host, by way of the host, straight (GPUDirect Storage), decoded there\n\n" +
			"Axes of --vary: backend, threads, in_flight, task_size, cache. Without it they are backend=all threads=1,N; --preset cucim is\n" +
			"backend=pool,bounce,gds task_size=32KiB,128KiB,512KiB,1MiB,4MiB in_flight=8,32,128,256, which are the axes of cuCIM's benchmark_read.py.",
		Args: []cli.Arg{{Name: "FILE", Usage: "TIFF file: a path, or an address http(s):// or s3://"}},
		Flags: append(append(choosing(), []cli.Flag{
			{Name: "ops", Kind: cli.Strings, Default: "full,rand", Check: benchzarr.Among(benchzarr.OpFull, benchzarr.OpRandom), Usage: "full: the whole level; rand: regions at seeded places"},
			{Name: "regions", Kind: cli.Int, Default: "100", Check: cli.Between(1, 1e6), Usage: "of rand"},
			{Name: "size", Kind: cli.Int, Default: "256", Check: cli.Between(1, 1e6), Usage: "width and height of the regions, in pixels"},
			{Name: "seed", Kind: cli.Int, Default: "1", Check: cli.Between(0, 1<<53), Usage: "of the places of the regions"},
			{Name: "to", Default: benchzarr.ToHost, Choices: []string{benchzarr.ToHost, benchzarr.ToDevice}, Usage: "where samples end where the way does not say"},
			{Name: "in_flight", Kind: cli.Int, Note: "as --threads; 2 regions for a GPU; the store's number for servers", Check: cli.Between(1, 4096), Usage: "tiles that are worked on at a time; buffers of pool and tiles; regions on their way to a GPU"},
			{Name: "vary", Kind: cli.Strings, Value: "AXIS=VALUE,...", Note: "backend=all threads=1,N", Usage: "what is varied"},
			{Name: "preset", Choices: []string{"cucim"}, Usage: "axes that are known well"},
		}...), measuring("5")...),
		Shared:      cli.GPU | cli.Resources | cli.Outputs,
		Accelerator: stage.GPU,
		Examples: []cli.Example{
			{Command: "bench-tiff read scan.tif --peers", Usage: "all ways, beside the other programs"},
			{Command: "bench-tiff read scan.tif --vary backend=host,direct --cache cold --ops full", Usage: "from the device that it lies on"},
			{Command: "bench-tiff read scan.svs --level 1 --ops rand --regions 1000 --size 512 --vary threads=1,2,4", Usage: "patches for training"},
			{Command: "bench-tiff read scan.tif --preset cucim --html read.html", Usage: "task sizes and numbers of buffers, with plots"},
		},
		Run: runRead,
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
