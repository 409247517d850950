package registration

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/pattern"
	"strata/pkg/smallfile"
)

// Pair holds the pairwise registration of one slice against the slice before it, from a folder. Missing parts
// are nil.
type Pair struct {
	Folder    string
	File      string // path of the transform; "" if there is none
	Transform *filter.Rigid
	Elastic   *bspline.Warp // displacements on top of Transform
	Offsets   *Offsets
	Metrics   *Metrics
}

// Confidence returns the confidence of the transform; the default is 1.
func (p *Pair) Confidence() float64 {
	if p.Metrics == nil {
		return 1
	}
	return p.Metrics.Confidence
}

// Agreement returns the correlation of the planes that were registered, by the metrics; 0 if it was not measured.
func (p *Pair) Agreement() float64 {
	if p.Metrics == nil {
		return 0
	}
	return p.Metrics.Correlation
}

// Folder is a folder of pairwise registrations. It has one folder per slice, with the slice number in its
// name ("slice_z04_normalize"), that holds a .tfm file and optionally offsets (.txt), [ElasticName] and
// pairwise_registration_metrics.json.
type Folder struct {
	path string
	by   map[int][]string // names of the folders with a number, sorted
}

var sliceNumber = pattern.Lazy(`z(\d+)`)

// OpenFolder lists a folder of pairwise registrations.
func OpenFolder(path string) (*Folder, error) {
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	f := &Folder{path, map[int][]string{}}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(path, e.Name()))
		if err != nil && sliceNumber().MatchString(e.Name()) {
			if lost := smallfile.Lost(filepath.Join(path, e.Name())); lost != nil {
				return nil, lost
			}
		}
		if err != nil || !info.IsDir() {
			continue
		}
		for _, m := range sliceNumber().FindAllStringSubmatch(e.Name(), -1) {
			id, err := strconv.Atoi(m[1])
			if err == nil && !slices.Contains(f.by[id], e.Name()) {
				f.by[id] = append(f.by[id], e.Name())
			}
		}
	}
	return f, nil
}

// Slices returns the number of slices with a folder.
func (f *Folder) Slices() int { return len(f.by) }

// IDs returns the numbers of the slices with a folder, sorted.
func (f *Folder) IDs() []int { return slices.Sorted(maps.Keys(f.by)) }

// Pair reads the registration of a slice, or returns nil if no folder has its number. Of several folders with the
// number, or several files of a kind, it takes the first by name, but prefers "transform.tfm" and "offsets.txt" to
// other names ("*offset*.txt").
func (f *Folder) Pair(ctx context.Context, id int) (p *Pair, warnings []string, err error) {
	names := f.by[id]
	if len(names) == 0 {
		return nil, nil, nil
	}
	p = &Pair{Folder: filepath.Join(f.path, names[0])}
	if len(names) > 1 {
		warnings = append(warnings, fmt.Sprintf("%s: %d folders for slice %d, the first is used: %s", f.path, len(names), id, strings.Join(names, ", ")))
	}
	if err := p.read(ctx, &warnings); err != nil {
		return nil, nil, err
	}
	return p, warnings, nil
}

// OpenPair reads the registration of one pair from its folder, which must contain a transform.
func OpenPair(ctx context.Context, path string) (*Pair, error) {
	p := &Pair{Folder: path}
	var warnings []string
	if err := p.read(ctx, &warnings); err != nil {
		return nil, err
	}
	if p.Transform == nil {
		return nil, fmt.Errorf("%s: no .tfm file: want the folder that register wrote for a pair", path)
	}
	return p, nil
}

// MetricsName is the name of the file of metrics in the folder of a pair.
const MetricsName = "pairwise_registration_metrics.json"

func (p *Pair) read(ctx context.Context, warnings *[]string) error {
	var err error
	metrics := filepath.Join(p.Folder, MetricsName)
	if _, none := os.Lstat(metrics); none == nil {
		if p.Metrics, err = OpenMetrics(ctx, metrics); err != nil {
			return err
		}
	}
	tfm, err := p.file("transform.tfm", "", ".tfm")
	if err != nil {
		return err
	}
	if tfm == "" {
		*warnings = append(*warnings, fmt.Sprintf("%s: no .tfm file: no transform for this slice", p.Folder))
	} else if err := open(ctx, tfm, func(f io.Reader) error {
		p.File = tfm
		t, warning, err := readTransform(f, tfm)
		if warning != "" {
			*warnings = append(*warnings, warning)
		}
		p.Transform = &t
		return err
	}); err != nil {
		return err
	}
	if err := p.readElastic(ctx, tfm != "", warnings); err != nil {
		return err
	}
	txt, err := p.file("offsets.txt", "offset", ".txt")
	if err != nil {
		return err
	}
	if txt != "" {
		if err := open(ctx, txt, func(f io.Reader) error {
			o, err := ReadOffsets(f, txt)
			p.Offsets = &o
			return err
		}); err != nil {
			return err
		}
	}
	for _, path := range []string{tfm, txt} {
		if why := p.stranger(ctx, path); why != "" {
			*warnings = append(*warnings, why)
		}
	}
	return nil
}

// readElastic reads the displacements, unless the metrics show that they are another registration's.
func (p *Pair) readElastic(ctx context.Context, transformed bool, warnings *[]string) error {
	elastic := filepath.Join(p.Folder, ElasticName)
	if _, err := os.Lstat(elastic); err != nil || !transformed {
		return nil
	}
	if why := p.stranger(ctx, elastic); why != "" {
		*warnings = append(*warnings, why+"; its displacements are not applied")
		return nil
	}
	return open(ctx, elastic, func(f io.Reader) (err error) {
		p.Elastic, err = ReadElastic(f, elastic)
		return err
	})
}

// stranger says why a file of the pair's folder is not the one that its metrics describe; "" if it is, or if the
// metrics name no files.
func (p *Pair) stranger(ctx context.Context, path string) string {
	if path == "" || p.Metrics == nil || p.Metrics.Files == nil {
		return ""
	}
	digest, named := p.Metrics.Files[filepath.Base(path)]
	if !named {
		return fmt.Sprintf("%s: %s does not name it: it may belong to another registration", path, MetricsName)
	}
	content, err := smallfile.Read(ctx, path)
	if err == nil && smallfile.Digest(content) != digest {
		return fmt.Sprintf("%s: is not the file that %s describes: it was changed, or belongs to another registration", path, MetricsName)
	}
	return "" // what cannot be read is an error elsewhere
}

// file returns the path of a file: the one named in the metrics, else the one with the usual name, else the first whose
// name contains part and ends in extension. It returns "" if there is none.
func (p *Pair) file(usual, part, extension string) (string, error) {
	entries, err := os.ReadDir(p.Folder)
	if err != nil {
		return "", err
	}
	found, named := "", ""
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, extension) || name[0] == '.' || name == ElasticName {
			continue
		}
		if p.Metrics != nil && p.Metrics.Files[name] != "" && named == "" {
			named = name
		}
		if name == usual || found == "" && strings.Contains(name, part) {
			found = name // the usual one replaces another
		}
	}
	if name := cmp.Or(named, found); name != "" {
		return filepath.Join(p.Folder, name), nil
	}
	return "", nil
}

func open(ctx context.Context, path string, read func(io.Reader) error) error {
	f, err := smallfile.Open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}
