package zarrtool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"strata/pkg/cli"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/runrecord"
	"strata/pkg/units"
	"strata/pkg/zarr"
)

func validateCommand() *cli.Command {
	return &cli.Command{
		Name:  "validate",
		Usage: "check that chunks decode and OME-Zarr metadata is valid, or that two arrays are equal",
		Description: "Prints one line per problem and exits with code 3 if there is any; otherwise logs that\n" +
			"PATH is valid. It stops after --max_findings problems, and says so. A chunk that is not stored reads as the fill\n" +
			"value. It counts as a problem if the array states that its writer stored it, as arrays of these programs do, and\n" +
			"with --complete in any array.\n\n" +
			"With OTHER, checks that PATH and OTHER are arrays, or hierarchies, of equal shape, data type and values. Chunks,\n" +
			"codecs and Zarr format may differ. NaN equals NaN.",
		Args: []cli.Arg{
			{Name: "PATH", Usage: "Zarr array or group: folder, .zip file, or http(s):// or s3:// URL"},
			{Name: "OTHER", Usage: "array or group that PATH must equal", Optional: true},
		},
		Flags: []cli.Flag{
			{Name: "ngff", Kind: cli.Bool, Usage: "require OME-Zarr metadata, and check it strictly"},
			{Name: "files", Kind: cli.Strings, Value: "FILE,...", Usage: "check that the run that wrote the image also wrote these files (or folders of maps)"},
			{Name: "max_findings", Kind: cli.Int, Default: "100", Check: cli.Between(1, 100_000), Usage: "stop after this many problems, 1 to 100000"},
			{Name: "metadata_only", Kind: cli.Bool, Usage: "check only metadata; do not read chunks"},
			{Name: "complete", Kind: cli.Bool, Usage: "report every chunk that is not stored, unless the array states that its writer left that many out"},
		},
		Shared: cli.Resources,
		Examples: []cli.Example{
			{Command: "zarr-tool validate result.ome.zarr --ngff", Usage: "before you share an image"},
			{Command: "zarr-tool validate a.zarr b.zarr", Usage: "after a conversion"},
			{Command: "zarr-tool validate s.ome.zarr --files s_crop.json", Usage: "whether the image and the file are of the same run"},
		},
		Run: cli.Do(runValidate),
	}
}

// findings prints problems and counts them, up to a limit.
type findings struct {
	r     *cli.Run
	count int
	most  int
}

// add prints a problem, unless there are enough.
func (f *findings) add(format string, args ...any) {
	if !f.enough() {
		fmt.Fprintln(f.r.Stdout, cli.Message(fmt.Sprintf(format, args...)))
		f.count++
	}
}

// enough reports whether the search should end.
func (f *findings) enough() bool { return f.count >= f.most }

func runValidate(ctx context.Context, r *cli.Run) error {
	if r.Bool("complete") && r.Bool("metadata_only") {
		return cli.Usage("--complete reads chunks, --metadata_only none: give one of them")
	}
	missing := new(zarr.Missing)
	in, err := openNode(ctx, r, r.Arg("PATH"), missing)
	if err != nil {
		return err
	}
	f := &findings{r: r, most: r.Int("max_findings")}
	plan, err := planCopy(ctx, in.Node, "", passing(r))
	if err != nil {
		return cli.BadInput(err)
	}
	if other := r.Arg("OTHER"); other != "" {
		if err := compare(ctx, f, in, plan, other); err != nil {
			return err
		}
		return f.verdict(in.path, fmt.Sprintf("equal: %s and %s: %s", in.path, other, contents(plan)))
	}
	if err := warnOfRemains(ctx, r, in); err != nil {
		return err
	}
	if err := checkNGFF(ctx, f, in); err != nil {
		return err
	}
	if err := checkFiles(ctx, f, in); err != nil {
		return err
	}
	if !r.Bool("metadata_only") && !f.enough() {
		task := r.Progress("validate", decoded(plan))
		for _, p := range plan {
			if a, ok := p.node.(*zarr.Array); ok && !f.enough() {
				if err := checkChunks(ctx, f, a, task.Add); err != nil {
					return err
				}
			}
		}
		task.Done()
		f.missing(missing.List(), r.Bool("complete"))
	}
	checked := contents(plan)
	if r.Bool("metadata_only") {
		checked += ", metadata only"
	}
	return f.verdict(in.path, fmt.Sprintf("valid: %s: %s", in.path, checked))
}

// contents describes what a hierarchy holds.
func contents(plan []step) string {
	arrays := 0
	for _, p := range plan {
		if _, ok := p.node.(*zarr.Array); ok {
			arrays++
		}
	}
	return units.Count(arrays, "array") + ", " + units.FormatSize(decoded(plan))
}

// warnOfRemains warns about what a killed run left in an image.
func warnOfRemains(ctx context.Context, r *cli.Run, in *node) error {
	g, ok := in.Node.(*zarr.Group)
	if !ok {
		return nil
	}
	children, err := childrenOf(ctx, g)
	if err != nil {
		return cli.BadInput(err)
	}
	remains, err := ngff.Remains(ctx, g, children)
	if err == nil && len(remains) > 0 {
		r.Warn("%s: a run of zarr-tool ome was killed here and left %s, which do not belong to the image; the next run removes them", in.path, strings.Join(remains, ", "))
	}
	return cli.BadInput(err)
}

// missing reports lost chunks: those of arrays that state how many were stored and, with complete, those of others
// too.
func (f *findings) missing(list []zarr.Absent, complete bool) {
	for _, x := range list {
		if lost, known := x.Lost(); lost > 0 || !known && complete {
			f.add("%s: %s", x.Array.Location(), &x)
		}
	}
}

// verdict ends a check. It prints the conclusion good if there are no findings.
func (f *findings) verdict(path, good string) error {
	if f.count == 0 {
		f.r.Conclude("%s", good)
		return nil
	}
	if f.enough() {
		return cli.BadInputf("%s: %s; more were not looked for (--max_findings %d)", path, units.Count(f.count, "problem"), f.most)
	}
	return cli.BadInputf("%s: %s", path, units.Count(f.count, "problem"))
}

// checkNGFF validates OME-Zarr metadata if there are any, or must be.
func checkNGFF(ctx context.Context, f *findings, in *node) error {
	g, ok := in.Node.(*zarr.Group)
	if !ok {
		if f.r.Bool("ngff") {
			f.add("%s: is an array, not an OME-Zarr group", in.path)
		}
		return nil
	}
	attrs := g.Attributes()
	has := attrs["ome"] != nil
	for _, k := range ngffMembers {
		has = has || attrs[k] != nil
	}
	if !has && !f.r.Bool("ngff") {
		return nil
	}
	problems, more := ngff.ValidateUpTo(ctx, in.store, in.key, f.most-f.count)
	for _, p := range problems {
		if p.Err != nil && cli.ExitCode(cli.BadInput(p.Err)) != cli.ExitBadInput {
			return p.Err // the machine's or the network's, and nothing is known of the file
		}
		if p.Severity == ngff.Error || f.r.Bool("ngff") {
			f.add("%s", p)
		} else {
			f.r.Warn("%s", p)
		}
	}
	if more && !f.enough() {
		f.r.Warn("%s: has more warnings of its metadata, which are not listed (--max_findings %d)", in.path, f.most)
	}
	return ctx.Err()
}

// checkFiles reports files listed by --files that were not written with the image.
func checkFiles(ctx context.Context, f *findings, in *node) error {
	files := f.r.Strings("files")
	if files == nil {
		return nil
	}
	var said runrecord.Provenance
	if raw, ok := in.Attributes()[runrecord.Attribute]; ok {
		if err := json.Unmarshal(raw, &said); err != nil {
			return cli.BadInputf("%s: attribute %s: %w", in.path, runrecord.Attribute, err)
		}
	}
	if len(said.Files) == 0 {
		f.add("%s: does not record which files were written with it", in.path)
		return nil
	}
	for _, name := range files {
		path, err := f.r.LocalInput(name)
		if err != nil {
			return err
		}
		same, err := runrecord.Wrote(ctx, path, said.Files)
		if err != nil {
			return cli.BadInput(err)
		}
		if !same {
			f.add("%s: was not written together with %s: one of them is from another run, or was changed", name, in.path)
		}
	}
	return nil
}

// errEnough ends a search that has found enough.
var errEnough = errors.New("enough findings")

// checkChunks decodes every chunk, and names bad blocks until there are enough findings: a shard of a gigabyte can have
// millions.
func checkChunks(ctx context.Context, f *findings, a *zarr.Array, done func(int64)) error {
	var mu sync.Mutex
	var lines []string
	elem := a.DType().Size()
	err := eachRegion(ctx, a, f.r.Options.Threads, f.r.Options.Mem, func(ctx context.Context, region zarr.Region, buf []byte) error {
		err := a.With(zarr.Workers(1)).Read(ctx, region, buf)
		n := int64(elem)
		for _, s := range region.Shape {
			n *= int64(s)
		}
		done(n)
		if err == nil || ctx.Err() != nil || cli.ExitCode(cli.BadInput(err)) != cli.ExitBadInput {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if lines = append(lines, cli.Message(err.Error())); f.count+len(lines) >= f.most {
			return errEnough
		}
		return nil
	})
	slices.Sort(lines)
	for _, l := range lines {
		f.add("%s", l)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return cli.BadInput(err)
}

// compare checks two arrays, or two hierarchies array by array.
func compare(ctx context.Context, f *findings, in *node, plan []step, path string) error {
	other, err := openNode(ctx, f.r, path, nil)
	if err != nil {
		return err
	}
	theirs, err := planCopy(ctx, other.Node, "", passing(f.r))
	if err != nil {
		return cli.BadInput(err)
	}
	arrays := func(plan []step) map[string]*zarr.Array {
		m := map[string]*zarr.Array{}
		for _, p := range plan {
			if a, ok := p.node.(*zarr.Array); ok {
				m[p.path] = a
			}
		}
		return m
	}
	left, right := arrays(plan), arrays(theirs)
	for _, p := range sortedKeys(left) {
		if f.enough() {
			return nil
		}
		if right[p] == nil {
			f.add("%s: no array %q, which %s has", other.path, p, in.path)
			continue
		}
		if err := compareArrays(ctx, f, left[p], right[p]); err != nil {
			return err
		}
	}
	for _, p := range sortedKeys(right) {
		if left[p] == nil {
			f.add("%s: no array %q, which %s has", in.path, p, other.path)
		}
	}
	return nil
}

var errDiffer = errors.New("differ")

func compareArrays(ctx context.Context, f *findings, a, b *zarr.Array) error {
	switch {
	case !slices.Equal(a.Shape(), b.Shape()):
		f.add("%s has shape %v, %s %v", a.Location(), a.Shape(), b.Location(), b.Shape())
		return nil
	case a.DType() != b.DType() || a.NumpyType() != b.NumpyType():
		f.add("%s is of type %v, %s %v", a.Location(), cmp.Or(a.NumpyType(), a.DType().String()), b.Location(), cmp.Or(b.NumpyType(), b.DType().String()))
		return nil
	}
	var first atomic.Pointer[string]
	b = b.With(zarr.Workers(1))
	err := eachBlock(ctx, a, nil, a.Chunks(), f.r.Options.Threads, f.r.Options.Mem/2, func(ctx context.Context, r zarr.Region, data []byte) error {
		theirs := make([]byte, len(data))
		if err := b.Read(ctx, r, theirs); err != nil {
			return err
		}
		i := firstDifference(data, theirs, a.DType())
		if i < 0 {
			return nil
		}
		at := make([]int, len(r.Shape))
		for d := len(at) - 1; d >= 0; d-- {
			at[d] = r.Start[d] + i%r.Shape[d]
			i /= r.Shape[d]
		}
		text := fmt.Sprintf("%s and %s differ at %v", a.Location(), b.Location(), at)
		first.CompareAndSwap(nil, &text)
		return errDiffer
	})
	if errors.Is(err, errDiffer) {
		f.add("%s", *first.Load())
		return nil
	}
	return cli.BadInput(err)
}

// firstDifference returns the index of the first element that differs, or -1. NaN equals NaN.
func firstDifference(a, b []byte, t dtype.Type) int {
	if bytes.Equal(a, b) {
		return -1
	}
	size := t.Size()
	part := t.SwapSize()
	for i := 0; i < len(a); i += part {
		if !bytes.Equal(a[i:i+part], b[i:i+part]) && !(isNaN(a[i:i+part], t) && isNaN(b[i:i+part], t)) {
			return i / size
		}
	}
	return -1
}

func isNaN(b []byte, t dtype.Type) bool {
	switch t {
	case dtype.Complex64:
		t = dtype.Float32
	case dtype.Complex128:
		t = dtype.Float64
	}
	nan := false
	if t.IsFloat() {
		dtype.Each(b, t, func(x float64) { nan = x != x })
	}
	return nan
}
