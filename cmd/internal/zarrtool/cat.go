package zarrtool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/npy"
	"strata/pkg/zarr"
)

func catCommand() *cli.Command {
	return &cli.Command{
		Name:  "cat",
		Usage: "write an array, or a region of it, as .npy, raw bytes or text",
		Description: "The levels of an image in a TIFF file FILE are FILE/0, FILE/1 and so on. --page writes the samples of one\n" +
			"directory as they are decoded: (y, x), interleaved samples (y, x, s), separate planes (s, y, x) or volumetric\n" +
			"tiles (z, y, x).\n\n" +
			"Of a CZI file, --subblock writes the pixels of a sub-block as stored. --plane writes a plane of level 0, put\n" +
			"together from the tiles of all scenes or of one: (y, x), or for colours (y, x, c) in the order blue, green, red.",
		Args: []cli.Arg{{Name: "ARRAY", Usage: "Zarr array, TIFF or CZI file: path (also into a .zip, .tif or .czi) or URL"}},
		Flags: []cli.Flag{
			{Name: "page", Kind: cli.Int, Check: cli.Between(0, 1<<30), Value: "N", Usage: "page (IFD) of a TIFF file, counted from 0"},
			{Name: "sub_ifd", Kind: cli.Int, Check: cli.Between(0, 1<<16), Value: "K", Usage: "sub-IFD of the page that --page names, counted from 0"},
			{Name: "subblock", Kind: cli.Int, Check: cli.AtLeast(0), Value: "N", Usage: "sub-block of a CZI file, counted from 0"},
			{Name: "plane", Kind: cli.Ints, Check: cli.AtLeast(0), Value: "C,Z,T", Usage: "plane of a CZI file: indices of channel, depth and time, from 0"},
			{Name: "scene", Kind: cli.Int, Check: cli.AtLeast(0), Value: "S", Note: "all", Usage: "use only the tiles of this scene of a CZI file for --plane, counted from 0"},
			{Name: "region", Short: "r", Value: "A:B,...", Note: "the whole array", Usage: "part of the array: start:stop or an index for each axis, as in numpy"},
			{Name: "output", Short: "o", Value: "FILE", Default: "-", Usage: "file to write; - is standard output"},
			{Name: "format", Choices: []string{"npy", "raw", "text"}, Note: "npy for FILE.npy, else raw", Usage: "output format: npy, raw bytes (both little-endian, C order) or text with one number per line"},
		},
		Shared: cli.Inputs | cli.Resources | cli.Outputs,
		Examples: []cli.Example{
			{Command: "zarr-tool cat mosaic.ome.zarr/0 -o mosaic.npy", Usage: "the whole array for numpy.load"},
			{Command: "zarr-tool cat mosaic.ome.zarr/0 --region 0:4,:,10:20 -o part.npy", Usage: "four planes, ten columns"},
			{Command: "zarr-tool cat mosaic.ome.zarr/0 --region 60,100,: --format text", Usage: "the numbers of one row"},
			{Command: "zarr-tool cat scan.svs --page 0 --region 5000:6000,5000:6000,: -o part.npy", Usage: "red, green and blue of a slide"},
			{Command: "zarr-tool cat scan.czi --plane 0,0,0 --scene 1 -o plane.npy", Usage: "one scene of a CZI file"},
		},
		Run: cli.Do(runCat),
	}
}

func runCat(ctx context.Context, r *cli.Run) error {
	below, err := partKey(r)
	if err != nil {
		return err
	}
	a, err := openArray(ctx, r, r.Arg("ARRAY"), below, datasets.Missing(r))
	if err != nil {
		return err
	}
	sel, err := parseRegion(r.String("region"), a.Shape())
	if err != nil {
		return cli.Usage("--region %w", err)
	}
	format, name := r.String("format"), r.String("output")
	if format == "" {
		if format = "raw"; strings.HasSuffix(name, ".npy") {
			format = "npy"
		}
	}
	w := r.Stdout
	if name != "-" {
		out, err := r.OutputFile(name)
		if err != nil {
			return err
		}
		f, err := out.Create()
		if err != nil {
			return err
		}
		defer f.Close()
		w = f
	} else if err := r.NeedStdout(); err != nil {
		return err
	} else if format != "text" && r.ToTerminal() {
		return cli.Usage("--format %s to a terminal: give -o FILE, pipe it, or use --format text", format)
	}
	buffered := bufio.NewWriterSize(w, 1<<20)
	if format == "npy" {
		if err := npy.WriteHeader(buffered, npy.Header{Type: a.DType(), Shape: sel.shape, Time: a.NumpyType()}); err != nil {
			return err
		}
	}
	emit := func(b []byte) error { _, err := buffered.Write(b); return err }
	if format == "text" {
		emit = func(b []byte) error { return writeText(buffered, b, a.DType()) }
	}
	if err := stream(ctx, a, sel.Region, nil, r.Options.AssuredMem(), emit); err != nil {
		return cli.BadInput(err)
	}
	return buffered.Flush()
}

// partKey returns the key of the part of a TIFF or CZI file that flags select, or "".
func partKey(r *cli.Run) (string, error) {
	named := 0
	for _, flag := range []string{"page", "subblock", "plane"} {
		if r.IsSet(flag) {
			named++
		}
	}
	plane := r.Ints("plane")
	switch {
	case named > 1:
		return "", cli.Usage("--page, --subblock and --plane exclude each other: give one of them")
	case r.IsSet("sub_ifd") && !r.IsSet("page"):
		return "", cli.Usage("--sub_ifd %d: give --page as well: a sub-IFD belongs to a page", r.Int("sub_ifd"))
	case r.IsSet("scene") && !r.IsSet("plane"):
		return "", cli.Usage("--scene %d: give --plane as well", r.Int("scene"))
	case r.IsSet("sub_ifd"):
		return fmt.Sprintf("pages/%d.%d", r.Int("page"), r.Int("sub_ifd")), nil
	case r.IsSet("page"):
		return fmt.Sprintf("pages/%d", r.Int("page")), nil
	case r.IsSet("subblock"):
		return fmt.Sprintf("subblocks/%d", r.Int("subblock")), nil
	case r.IsSet("plane") && len(plane) != 3:
		return "", cli.Usage("--plane has %d numbers, want 3 (channel, depth, time)", len(plane))
	case r.IsSet("plane"):
		scene := "all"
		if r.IsSet("scene") {
			scene = fmt.Sprint(r.Int("scene"))
		}
		return fmt.Sprintf("planes/%s/%d.%d.%d", scene, plane[0], plane[1], plane[2]), nil
	}
	return "", nil
}

// stream reads a region in slabs that fit in the budget and are whole chunks thick if possible, and emits its elements
// with the axes in the given order, the slowest first; nil stands for C order.
func stream(ctx context.Context, a *zarr.Array, r zarr.Region, order []int, budget int64, emit func([]byte) error) error {
	slab, elem := append([]int{}, r.Shape...), a.DType().Size()
	for _, n := range r.Shape {
		if n == 0 {
			return nil
		}
	}
	axes, straight := order, slices.IsSorted(order)
	for d := 0; order == nil && d < len(slab); d++ {
		axes = append(axes, d)
	}
	size := func() int64 {
		n := int64(elem)
		for _, s := range slab {
			n = satMul(n, int64(s))
		}
		return n
	}
	budget /= 2 // the other half is the decoders'
	for _, d := range axes {
		if size() <= budget {
			break
		}
		whole := slab[d]
		slab[d] = 1
		if fit := budget / size(); fit > 1 { // as many as fit, in whole chunks if any
			slab[d] = int(min(fit, int64(whole)))
			if c := a.Chunks()[d]; slab[d] > c {
				slab[d] -= slab[d] % c
			}
			break
		}
	}
	buf, err := mem.Alloc(int(size()))
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	at, strides := zarr.Region{Start: append([]int{}, r.Start...), Shape: make([]int, len(slab))}, make([]int, len(slab))
	for {
		n := elem
		for i := len(axes) - 1; i >= 0; i-- {
			d := axes[i]
			at.Shape[d] = slab[d]
			if slab[d] < r.Shape[d] { // end at the next multiple, so that later slabs begin with a chunk
				at.Shape[d] = min(slab[d]-at.Start[d]%slab[d], r.Start[d]+r.Shape[d]-at.Start[d])
			}
			strides[d] = n
			n *= at.Shape[d]
		}
		if straight {
			err = a.Read(ctx, at, buf[:n])
		} else {
			err = a.ReadStrided(ctx, at, buf[:n], strides)
		}
		if err != nil {
			return err
		}
		if err := emit(buf[:n]); err != nil {
			return err
		}
		i := len(axes) - 1
		for ; i >= 0; i-- {
			d := axes[i]
			if at.Start[d] += at.Shape[d]; at.Start[d] < r.Start[d]+r.Shape[d] {
				break
			}
			at.Start[d] = r.Start[d]
		}
		if i < 0 {
			return nil
		}
	}
}

// writeText writes each element on a line, in the shortest form that parses to the same number. Text and bytes of
// fixed length are quoted, without trailing zeros.
func writeText(w io.Writer, b []byte, t dtype.Type) error {
	var line []byte
	var err error
	put := func() {
		line = append(line, '\n')
		if _, e := w.Write(line); e != nil {
			err = e
		}
		line = line[:0]
	}
	switch {
	case t.IsFixedBytes():
		for ; len(b) > 0; b = b[t.Size():] {
			line = strconv.AppendQuoteToASCII(line, string(bytes.TrimRight(b[:t.Size()], "\x00")))
			put()
		}
	case t.IsFixedText():
		for ; len(b) > 0; b = b[t.Size():] {
			line = strconv.AppendQuote(line, textOf(b[:t.Size()]))
			put()
		}
	case t == dtype.Int64:
		for _, v := range dtype.Slice[int64](b) {
			line = strconv.AppendInt(line, v, 10)
			put()
		}
	case t == dtype.Uint64:
		for _, v := range dtype.Slice[uint64](b) {
			line = strconv.AppendUint(line, v, 10)
			put()
		}
	case t == dtype.Complex64:
		v := dtype.Slice[float32](b)
		for i := 0; i+1 < len(v); i += 2 {
			line = fmt.Appendf(line, "%v%+gj", v[i], v[i+1])
			put()
		}
	case t == dtype.Complex128:
		v := dtype.Slice[float64](b)
		for i := 0; i+1 < len(v); i += 2 {
			line = fmt.Appendf(line, "%v%+gj", v[i], v[i+1])
			put()
		}
	default:
		bits := 64
		if t == dtype.Float32 || t == dtype.Float16 {
			bits = 32
		}
		dtype.Each(b, t, func(x float64) {
			line = strconv.AppendFloat(line, x, 'g', -1, bits)
			put()
		})
	}
	return err
}

// textOf returns text of four-byte code points, without trailing zeros.
func textOf(b []byte) string {
	var s strings.Builder
	for ; len(b) > 0; b = b[4:] {
		s.WriteRune(rune(binary.LittleEndian.Uint32(b)))
	}
	return strings.TrimRight(s.String(), "\x00")
}
