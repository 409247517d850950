package phantom

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/czi"
	"strata/pkg/phantom"
	"strata/pkg/replace"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/codec"
)

// scan returns how slide scans are stored.
func scan(r *cli.Run, c *phantom.Config) (phantom.Scan, error) {
	o := r.Options
	sc := phantom.Scan{Channels: r.Int("channels"), Compression: czi.Zstd1, Level: 1, Pyramid: o.Levels > 0, Workers: o.Threads, Mem: o.Mem}
	if _, ok := phantom.ScanPixels(c.DType); !ok {
		return sc, cli.Usage("--dtype %s: CZI files cannot store such pixels (must be uint8, uint16, float32 or float64)", c.DType)
	}
	for _, name := range []string{"truth_slices", "shard", "chunks", "zarr_format", "checksum"} {
		if r.IsSet(name) {
			return sc, cli.Usage("--%s is for mosaic grids, not for --czi", name)
		}
	}
	if !r.IsSet("codec") {
		return sc, nil
	}
	if _, err := codec.FromFlag(o.Codec, c.DType, 3); err != nil {
		return sc, cli.Usage("--codec: %w", err)
	}
	switch name, level, given := strings.Cut(o.Codec, ":"); {
	case name == "raw":
		sc.Compression = czi.None
	case name == "zstd" && given:
		sc.Level, _ = strconv.Atoi(level) // FromFlag has parsed it
	case name != "zstd":
		return sc, cli.Usage("--codec %s: CZI files do not support it (must be raw or zstd, with :LEVEL or without)", o.Codec)
	}
	return sc, nil
}

// runScans writes slide scans and their truth.
func runScans(ctx context.Context, r *cli.Run, s *phantom.Specimen) error {
	c := s.Config()
	sc, err := scan(r, &c)
	if err != nil {
		return err
	}
	out, err := r.OutputFolder(r.Arg("OUT"), replace.ByRule(ctx, written))
	if err != nil {
		return err
	}
	shape := c.Shape()
	each := int64(c.DType.Size()) * int64(sc.Channels) * int64(shape[0]) * int64(shape[1]) * int64(shape[2])
	task := r.Progress("make", int64(c.Slices)*each)
	sc.Progress = task.Add
	if err := writeTruth(s, out.Work(), r.Bool("truth_surface"), false); err != nil {
		return err
	}
	for i := range c.Slices {
		if !s.Present(i) {
			continue
		}
		name := phantom.ScanName(i) + ".czi"
		n, err := writeScan(ctx, s, filepath.Join(out.Work(), name), i, sc)
		if err != nil {
			return err
		}
		r.Meter.AddWritten(n)
		r.Wrote(runrecord.Dataset{Path: address.Address(filepath.Join(out.Path(), name)), Shape: []int{sc.Channels, shape[0], shape[1], shape[2]}, DType: c.DType.String(), VoxelSize: c.Voxel[:], Bytes: n})
	}
	task.Done()
	return nil
}

// writeScan writes the slide scan of a slice and returns its length.
func writeScan(ctx context.Context, s *phantom.Specimen, path string, slice int, sc phantom.Scan) (n int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := s.WriteCZI(ctx, f, slice, sc); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
