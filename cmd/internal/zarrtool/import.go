package zarrtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/npy"
	"strata/pkg/runrecord"
	"strata/pkg/smallfile"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

func importCommand() *cli.Command {
	return &cli.Command{
		Name:  "import",
		Usage: "convert TIFF, CZI, NIfTI or NRRD to an OME-Zarr image, or .npy or raw bytes to a Zarr array",
		Description: "Recognises IN by its content, not its name. A TIFF file (OME-TIFF, Aperio SVS, ImageJ stack, pyramid of any\n" +
			"kind) becomes an OME-Zarr image with pyramid, pixel size, channels and colours. Pictures of a slide beside it become\n" +
			"images in OUT/associated, which its metadata name. IN/label and the like are further images in the file; zarr-tool\n" +
			"info lists them.\n\n" +
			"A CZI file becomes an OME-Zarr image, too: the tiles of a scene are put together, later ones on top. Several\n" +
			"scenes become a group of images, unless IN/N names one.\n\n" +
			"A volume in NIfTI (.nii, .nii.gz, .hdr with .img) or NRRD (.nrrd, .nhdr) keeps its place in space, which export\n" +
			"gives back.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "TIFF, CZI, NIfTI or NRRD file (or its http(s):// or s3:// URL), .npy file, file of raw elements, or - for standard input"},
			{Name: "OUT", Usage: "folder to write"},
		},
		Flags: []cli.Flag{
			{Name: "shape", Kind: cli.Ints, Value: "N,...", Check: cli.Between(0, cli.MostAxis), Usage: "shape of raw input, the slowest axis first"},
			{Name: "dtype", Value: "TYPE", Usage: "element type of raw input, such as uint16 (little-endian) or >f4 (big-endian)"},
			{Name: "offset", Kind: cli.Size, Usage: "number of bytes to skip before the first element of raw input"},
			{Name: "dimension_names", Kind: cli.Strings, Value: "NAME,...", Usage: "names of the axes of a Zarr array; needs Zarr format 3"},
			{Name: "attributes", Value: "JSON", Usage: "user attributes to store, as a JSON object"},
			{Name: "keep_levels", Kind: cli.Bool, Usage: "copy the pyramid levels of the file instead of computing new ones"},
			{Name: "whole_slide", Kind: cli.Bool, Usage: "put all scenes of a CZI file into one image"},
			{Name: "tiles", Kind: cli.Bool, Usage: "write the tiles of a CZI file as a mosaic grid for stitch --positions, instead of an image"},
			{Name: "save_positions", Value: "FILE", Note: "OUT_positions.json", Usage: "file to which --tiles writes the recorded positions of the tiles (JSON)"},
			associatedFlag,
			labelsFlag,
			{Name: "name", Note: "the file's", Usage: "name of the image"},
			{Name: "fill", Value: "VALUE", Note: "0", Usage: "fill value of the array: a number, true, false, NaN, Infinity or -Infinity"},
		},
		Shared: cli.Inputs | cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Hints: cli.Hints{"chunks": {Value: "N,...", Note: "the TIFF file's tiles, 1024 × 1024 for CZI, else up to 4 MiB"}, "shard": {Value: "N,...", Note: "no shards"},
			"zarr_format": {Note: "3"}},
		Examples: []cli.Example{
			{Command: "zarr-tool import scan.svs scan.ome.zarr --n_levels 6", Usage: "a slide scan, with a new pyramid"},
			{Command: "zarr-tool import https://host/scan.ome.tif scan.ome.zarr --keep_levels", Usage: "from a server, keeping its pyramid"},
			{Command: "zarr-tool import scan.czi scan.ome.zarr --whole_slide", Usage: "a CZI file, all scenes in one image"},
			{Command: "zarr-tool import scan.czi tiles.ome.zarr --tiles", Usage: "its tiles, to be stitched by: stitch tiles.ome.zarr OUT --positions tiles_positions.json"},
			{Command: "zarr-tool import atlas.nii.gz atlas.ome.zarr", Usage: "a volume, with its place in space"},
			{Command: "zarr-tool import regions.nii.gz regions.ome.zarr --labels", Usage: "the regions of an atlas, or a mask"},
			{Command: "zarr-tool import volume.npy volume.zarr --chunks 64,64,64", Usage: "a file written by numpy.save"},
			{Command: "zarr-tool import volume.raw volume.zarr --shape 200,512,512 --dtype uint16", Usage: "the raw file of a camera"},
			{Command: "zcat v.npy.gz | zarr-tool import - v.zarr --codec zstd:3", Usage: "from a pipe"},
		},
		Run: cli.Do(runImport),
	}
}

func runImport(ctx context.Context, r *cli.Run) error {
	name := r.Arg("IN")
	if n, err := openImage(ctx, r, name); n != nil || err != nil {
		if err != nil {
			return err
		}
		return importImage(ctx, r, n)
	}
	for _, flag := range []string{"keep_levels", "whole_slide", "tiles", "save_positions", "labels", "name", "n_levels"} {
		if r.IsSet(flag) {
			return cli.Usage("--%s is for images, and %s is not a TIFF, CZI, NIfTI or NRRD file", flag, name)
		}
	}
	in, err := openImport(ctx, r, name)
	if err != nil {
		return err
	}
	defer in.Close()
	spec, err := importSpec(r, in.header)
	if err != nil {
		return err
	}
	spec.Complete = true
	if err := try(ctx, spec); err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	st := out.Store
	size, err := in.header.Bytes()
	if err != nil {
		return cli.BadInputf("%s: %w", name, err)
	}
	task := r.Progress("import", int64(size))
	var a *zarr.Array
	if in.file != nil {
		src, err := in.array(ctx)
		if err != nil {
			return cli.BadInput(err)
		}
		if a, err = copyArray(ctx, r, src, st, "", spec, false, task.Add); err != nil {
			return cli.BadInput(err)
		}
	} else if a, err = importStream(ctx, r, in, st, spec, task.Add); err != nil {
		return err
	}
	task.Done()
	r.Read(runrecord.Dataset{Path: address.Address(name), Shape: in.header.Shape, DType: in.header.Type.String(), Bytes: int64(size)})
	r.Wrote(datasets.Describe(a, out.Path()))
	return nil
}

// imported is the input of an import: its header, followed by the file or, if that cannot seek, a stream.
type imported struct {
	name   string
	header npy.Header
	offset int64 // of the first element
	file   *os.File
	stream io.Reader
	close  func() error
}

func (in *imported) Close() {
	if in.close != nil {
		_ = in.close() // it was only read
	}
}

func openImport(ctx context.Context, r *cli.Run, name string) (*imported, error) {
	in := &imported{name: name, stream: r.Stdin, offset: r.Size("offset")}
	if name != "-" {
		path, err := r.Input(name)
		if err != nil {
			return nil, err
		}
		f, err := smallfile.Open(ctx, path)
		if err != nil {
			return nil, cli.BadInput(err)
		}
		in.file, in.stream, in.close = f.Regular(), f, f.Close
	}
	if !r.IsSet("shape") && !r.IsSet("dtype") {
		counted := &counter{r: in.stream}
		h, err := npy.ReadHeader(counted)
		if err != nil {
			return nil, cli.BadInputf("%s: %w (raw bytes need --shape and --dtype)", name, err)
		}
		in.header, in.offset = h, counted.n
		return in, nil
	}
	t := r.String("dtype")
	if t == "" {
		return nil, cli.Usage("--shape needs --dtype as well: raw bytes say neither")
	}
	in.header.Shape = r.Ints("shape")
	var err error
	if strings.ContainsAny(t[:1], "<>|") {
		in.header.Type, in.header.BigEndian, err = dtype.ParseTypestr(t)
	} else if in.header.Type, err = dtype.Parse(t); err != nil {
		if short, _, e := dtype.ParseTypestr("<" + t); e == nil { // u2, as numpy has it
			in.header.Type, err = short, nil
		}
	}
	if err != nil {
		return nil, cli.Usage("--dtype: %w", err)
	}
	if in.file == nil && in.offset > 0 {
		if _, err := io.CopyN(io.Discard, in.stream, in.offset); err != nil {
			return nil, cli.BadInputf("%s: ends before --offset %d: %w", name, in.offset, err)
		}
	}
	return in, nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func importSpec(r *cli.Run, h npy.Header) (zarr.Spec, error) {
	spec := zarr.Spec{Format: r.Options.ZarrFormat, Shape: h.Shape, Chunks: r.Options.Chunks, Shard: r.Options.Shard,
		DType: h.Type, Separator: "/", DimensionNames: r.Strings("dimension_names")}
	if spec.Format == 0 {
		spec.Format = 3
	}
	if spec.Chunks == nil {
		spec.Chunks = defaultChunks(h.Shape, h.Type.Size())
	}
	if len(spec.Chunks) != len(h.Shape) {
		return spec, cli.Usage("--chunks has %d axes, the input has %d", len(spec.Chunks), len(h.Shape))
	}
	if text := r.String("attributes"); text != "" {
		if err := json.Unmarshal([]byte(text), &spec.Attributes); err != nil {
			return spec, cli.Usage("--attributes: %w", err)
		}
	}
	var err error
	if spec.Fill, err = fillValue(r.String("fill")); err != nil {
		return spec, err
	}
	if spec.Codecs, err = codec.FromFlag(r.Options.Codec, h.Type, spec.Format); err != nil {
		return spec, cli.Usage("%w", err)
	}
	return spec, nil
}

// fillValue returns --fill as [zarr.Spec] takes it: nil, which means 0, if it is not given.
func fillValue(text string) (any, error) {
	switch strings.ToLower(text) {
	case "":
		return nil, nil
	case "true", "false":
		return strings.EqualFold(text, "true"), nil
	case "nan":
		return "NaN", nil
	case "inf", "infinity":
		return "Infinity", nil
	case "-inf", "-infinity":
		return "-Infinity", nil
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
		return nil, cli.Usage("--fill %q: want a number, true, false, NaN, Infinity or -Infinity", text)
	}
	return json.Number(text), nil
}

// try returns an error for an invalid specification before anything is written, because flags caused it.
func try(ctx context.Context, spec zarr.Spec) error {
	_, err := zarr.CreateArray(ctx, store.Memory(), "", spec)
	var format *zarr.FormatError
	if errors.As(err, &format) {
		return cli.Usage("cannot create this array: %s: %w", format.Field, format.Err)
	}
	if err != nil {
		return cli.Usage("cannot create this array: %w", err)
	}
	return nil
}

// defaultChunks halves the longest axis until a chunk has at most 4 MiB.
func defaultChunks(shape []int, elem int) []int {
	c := make([]int, len(shape))
	for d, n := range shape {
		c[d] = max(n, 1)
	}
	for {
		n, longest := int64(elem), 0
		for d := range c {
			n = satMul(n, int64(c[d]))
			if c[d] > c[longest] {
				longest = d
			}
		}
		if n <= 4<<20 {
			return c
		}
		c[longest] = (c[longest] + 1) / 2
	}
}

// array presents the file as a Zarr array of one raw chunk, so that regions can be read without reading the rest.
func (in *imported) array(ctx context.Context) (*zarr.Array, error) {
	info, err := in.file.Stat()
	if err != nil {
		return nil, err
	}
	size, err := in.header.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	if have := info.Size() - in.offset; have != int64(size) {
		return nil, fmt.Errorf("%s: %d bytes of elements, %v %v needs %d", in.name, max(have, 0), in.header.Shape, in.header.Type, size)
	}
	st := store.Memory()
	spec := zarr.Spec{Shape: in.header.Shape, Chunks: make([]int, len(in.header.Shape)), DType: in.header.Type, BigEndian: in.header.BigEndian}
	for d, n := range spec.Shape {
		spec.Chunks[d] = max(n, 1)
	}
	if in.header.Fortran {
		spec.Order = 'F'
	}
	a, err := zarr.CreateArray(ctx, st, "", spec)
	if err != nil {
		return nil, err
	}
	chunk := a.ChunkKey(make([]int, len(spec.Shape)))
	return zarr.OpenArray(ctx, &oneFile{Store: st, chunk: chunk, in: in, size: int64(size)}, "")
}

// oneFile is a store whose only chunk lies in a separate file.
type oneFile struct {
	store.Store
	chunk string
	in    *imported
	size  int64
}

func (s *oneFile) Location(string) string { return s.in.name }

func (s *oneFile) Open(ctx context.Context, key string) (store.Object, error) {
	if key != s.chunk {
		return s.Store.Open(ctx, key)
	}
	return s, nil
}

func (s *oneFile) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if key != s.chunk {
		return s.Store.Get(ctx, key, dst, limit)
	}
	if limit >= 0 && s.size > limit {
		return nil, fmt.Errorf("%s: %w", s.in.name, store.ErrTooLarge)
	}
	dst = append(dst[:0], make([]byte, s.size)...)
	_, err := s.ReadAt(ctx, dst, 0)
	return dst, err
}

func (s *oneFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off >= s.size {
		return 0, io.EOF
	}
	short := int64(len(p)) > s.size-off
	if short {
		p = p[:s.size-off]
	}
	n, err := s.in.file.ReadAt(p, s.in.offset+off)
	if errors.Is(err, io.EOF) && n < len(p) {
		err = fmt.Errorf("%s: %w", s.in.name, store.ErrChanged)
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

func (s *oneFile) Size() int64  { return s.size }
func (s *oneFile) Close() error { return nil }

var _ store.Object = (*oneFile)(nil)

// importStream imports elements as they arrive, one row of chunks (or shards) along the first axis at a time.
func importStream(ctx context.Context, r *cli.Run, in *imported, st store.Writer, spec zarr.Spec, done func(int64)) (*zarr.Array, error) {
	if in.header.Fortran {
		return nil, cli.BadInputf("%s: Fortran order cannot be taken from a stream: import the file itself", in.name)
	}
	a, err := zarr.CreateArray(ctx, st, "", spec, zarr.Workers(r.Options.Threads), zarr.Meter(r.Meter))
	if err != nil {
		return nil, err
	}
	rows, total := 1, 1
	row := spec.DType.Size()
	if len(spec.Shape) > 0 {
		rows, total = spec.Chunks[0], spec.Shape[0]
		if spec.Shard != nil {
			rows = spec.Shard[0]
		}
		if row, err = bytesOf(spec.Shape[1:], row); err != nil {
			return nil, cli.BadInputf("%s: %w", in.name, err)
		}
	}
	rows = min(rows, max(total, 1))
	if satMul(int64(rows), int64(row)) > r.Options.Mem/2 {
		return nil, cli.MemoryError("--mem %d MiB does not hold %d rows of the stream: give shorter --chunks along the first axis, more --mem, or import a file",
			r.Options.Mem>>20, rows)
	}
	buf, err := mem.Alloc(rows * row)
	if err != nil {
		return nil, err
	}
	defer mem.Free(buf)
	region := a.Bounds()
	for z := 0; z < total && row > 0; z += rows {
		n := min(rows, total-z)
		if len(region.Start) > 0 {
			region.Start[0], region.Shape[0] = z, n
		}
		b := buf[:n*row]
		if _, err := io.ReadFull(in.stream, b); err != nil {
			return nil, cli.BadInputf("%s: ends in row %d of %d: %w", in.name, z, total, err)
		}
		if in.header.BigEndian {
			swap(b, spec.DType.SwapSize())
		}
		if err := a.Write(ctx, region, b); err != nil {
			return nil, err
		}
		done(int64(len(b)))
	}
	if n, _ := in.stream.Read(make([]byte, 1)); n > 0 {
		return nil, cli.BadInputf("%s: has more elements than %v of %v", in.name, in.header.Shape, in.header.Type)
	}
	return a, nil
}

func swap(b []byte, unit int) {
	for i := 0; i+unit <= len(b); i += unit {
		for l, h := i, i+unit-1; l < h; l, h = l+1, h-1 {
			b[l], b[h] = b[h], b[l]
		}
	}
}
