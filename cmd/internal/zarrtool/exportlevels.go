package zarrtool

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/ngff"
	"strata/pkg/units"
)

// levelFile is a pyramid level and the file to which it is exported.
type levelFile struct {
	level int
	path  string
}

// exported returns the levels to export and the names of their files; none with --list.
func exported(r *cli.Run, in *node, im *ngff.Image) ([]levelFile, error) {
	levels, out, err := asked(r)
	switch {
	case err != nil:
		return nil, err
	case r.Bool("list") && (out != "" || levels != nil):
		return nil, cli.Usage("--list writes no file: leave out the file and --levels")
	case r.Bool("list"):
		return nil, nil
	case out == "":
		return nil, cli.Usage("argument OUT is missing: the file to write, or give --list")
	case levels == nil:
		level, err := chooseLevel(r, in, im)
		return []levelFile{{level, out}}, err
	case r.IsSet("level"), r.IsSet("resolution"):
		return nil, cli.Usage("--levels contradicts --level and --resolution: give one of them")
	}
	var files []levelFile
	for i, level := range levels {
		if err := checkLevel(in, im, "levels", level); err != nil {
			return nil, err
		}
		if !slices.Contains(levels[:i], level) {
			files = append(files, levelFile{level, levelName(out, im, level)})
		}
	}
	return files, nil
}

// asked returns what --levels asks for, and OUT. linum-extract-pyramid-levels has levels as arguments in place of OUT,
// and writes beside IN.
func asked(r *cli.Run) (levels []int, out string, err error) {
	if !r.HasArg("LEVEL") {
		return r.Ints("levels"), r.Arg("OUT"), nil
	}
	for _, text := range r.Args("LEVEL") {
		level, err := strconv.Atoi(text)
		if err != nil || level < 0 {
			return nil, "", cli.Usage("LEVEL %s: must be a whole number, at least 0", text)
		}
		levels = append(levels, level)
	}
	if levels = append(levels, r.Ints("levels")...); r.Bool("list") {
		return nil, "", nil
	}
	if levels == nil {
		return nil, "", cli.Usage("argument LEVEL is missing: a pyramid level to write, or give --list")
	}
	stem := strings.TrimRight(r.Arg("IN"), "/")
	for _, end := range []string{".zarr", ".ome"} {
		stem = strings.TrimSuffix(stem, end)
	}
	return levels, stem + ".nii", nil
}

// levelName returns a file's name with the level and its voxel size before the endings: brain_level2_40um.nii.gz.
func levelName(path string, im *ngff.Image, level int) string {
	stem, end := endings(path)
	return fmt.Sprintf("%s_level%d_%sum%s", stem, level, strings.Join(voxelNumbers(im, level), "x"), end)
}

// endings splits a file's name before the ending of its format, with the .gz or .ome that belongs to it.
func endings(path string) (stem, end string) {
	end = filepath.Ext(path)
	for _, long := range []string{".nii.gz", ".ome.tif", ".ome.tiff"} {
		if strings.HasSuffix(strings.ToLower(path), long) {
			end = path[len(path)-len(long):]
		}
	}
	return strings.TrimSuffix(path, end), end
}

// voxelNumbers returns the sides of a level's voxels in µm, in the order of the axes: one number if all are equal.
func voxelNumbers(im *ngff.Image, level int) (numbers []string) {
	for d, um := range im.LevelSize(level) {
		if im.Axes[d].Type == ngff.TypeSpace {
			numbers = append(numbers, fmt.Sprintf("%.4g", um))
		}
	}
	if len(slices.Compact(slices.Clone(numbers))) == 1 {
		return numbers[:1]
	}
	return numbers
}

// listLevels prints a line for each pyramid level.
func listLevels(r *cli.Run, im *ngff.Image) error {
	names := make([]string, len(im.Axes))
	var space []string
	for d, a := range im.Axes {
		names[d] = a.Name
		if a.Type == ngff.TypeSpace {
			space = append(space, a.Name)
		}
	}
	w := tabwriter.NewWriter(r.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "level\tpath\tshape %s\tvoxel %s (µm)\ttype\tdecoded\n", strings.Join(names, " × "), strings.Join(space, " × "))
	for k, l := range im.Levels {
		shape := make([]string, len(names))
		for d, n := range l.Array.Shape() {
			shape[d] = fmt.Sprint(n)
		}
		var voxel []string
		for d, um := range im.LevelSize(k) {
			if im.Axes[d].Type == ngff.TypeSpace {
				voxel = append(voxel, fmt.Sprintf("%.4g", um))
			}
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", k, l.Path, strings.Join(shape, " × "), strings.Join(voxel, " × "), l.Array.DType(), units.FormatSize(datasets.Bytes(l.Array)))
	}
	return w.Flush()
}

// checkLevel returns an error for a level of a flag that the image does not have.
func checkLevel(in *node, im *ngff.Image, flag string, level int) error {
	if level >= len(im.Levels) {
		return cli.Usage("--%s %d: %s has levels 0 to %d", flag, level, in.path, len(im.Levels)-1)
	}
	return nil
}

// chooseLevel returns the level that --level or --resolution asks for.
func chooseLevel(r *cli.Run, in *node, im *ngff.Image) (int, error) {
	if !r.IsSet("resolution") {
		return r.Int("level"), checkLevel(in, im, "level", r.Int("level"))
	}
	if r.IsSet("level") {
		return 0, cli.Usage("--resolution contradicts --level: give one of them")
	}
	return closestLevel(im, r.Float("resolution")), nil
}

// closestLevel returns the level whose voxels are closest to a size in µm, by the geometric mean of their sides.
func closestLevel(im *ngff.Image, um float64) int {
	best, closest := 0, math.Inf(1)
	for k := range im.Levels {
		logs, n := 0.0, 0.0
		for d, size := range im.LevelSize(k) {
			if im.Axes[d].Type == ngff.TypeSpace {
				logs, n = logs+math.Log(size), n+1
			}
		}
		if off := math.Abs(logs/max(n, 1) - math.Log(um)); off < closest {
			best, closest = k, off
		}
	}
	return best
}
