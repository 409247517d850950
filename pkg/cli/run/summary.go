package run

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"strata/pkg/runrecord"
	"strata/pkg/units"
)

// Conclude adds a result to the line that ends a successful run, such as "tissue begins at plane 12". It is the whole
// line of a run that writes nothing.
func (r *Run) Conclude(format string, args ...any) {
	r.results = append(r.results, fmt.Sprintf(format, args...))
}

// Decided logs, with --verbose, what the run settled before or while it worked: workers, memory, where it computes, how
// outputs are stored.
func (r *Run) Decided(format string, args ...any) { r.Log.Debug().Msgf(format, args...) }

// summarize logs the closing line of a successful run: the outputs, the speed, and the command's conclusion. A run
// without outputs or a conclusion, such as one that only prints, has no closing line.
func (r *Run) summarize(took time.Duration) {
	parts := append(r.written(), r.results...)
	if len(parts) == 0 {
		return
	}
	if traffic := r.Meter.BytesRead() + r.Meter.BytesWritten(); traffic > 0 && took > 0 {
		parts = append(parts, fmt.Sprintf("%s, %s/s", units.FormatDuration(took), units.FormatSize(int64(float64(traffic)/took.Seconds()))))
	} else {
		parts = append(parts, units.FormatDuration(took))
	}
	r.Log.Info().Msg(strings.Join(parts, "; "))
}

// mostNamed is the maximum number of further outputs that the last line of a run names after the first.
const mostNamed = 3

// written describes the outputs: the first one that holds an image in full, then the names of the others.
func (r *Run) written() []string {
	names := r.places()
	if len(names) == 0 {
		return nil
	}
	first, datasets := 0, r.datasets(names[0])
	for i := 1; i < len(names) && datasets == nil; i++ {
		if datasets = r.datasets(names[i]); datasets != nil {
			first = i
		}
	}
	var what []string
	if len(datasets) > 1 {
		what = append(what, fmt.Sprintf("%d arrays, the first %s", len(datasets), &datasets[0]))
	} else if len(datasets) == 1 && datasets[0].String() != "" {
		what = append(what, datasets[0].String())
	}
	if n := r.stored(names[first]); n > 0 {
		what = append(what, units.FormatSize(n))
	}
	text := "wrote " + names[first]
	if len(what) > 0 {
		text += ": " + strings.Join(what, ", ")
	}
	parts := []string{text}
	others := append(names[:first:first], names[first+1:]...)
	switch {
	case len(others) > mostNamed:
		parts = append(parts, fmt.Sprintf("also %d other outputs", len(others)))
	case len(others) > 0:
		parts = append(parts, "also "+strings.Join(others, ", "))
	}
	return parts
}

// places returns the paths of the outputs; of files that the record names by their folder, that folder.
func (r *Run) places() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.outputs.Paths() {
		for _, d := range r.record.Outputs {
			if at := strings.TrimSuffix(d.Path.Reveal(), "/"); strings.HasPrefix(path, at+"/") {
				path = at
			}
		}
		if !slices.Contains(names, path) {
			names = append(names, path)
		}
	}
	return names
}

// datasets returns the record's description of an output, or of the images in it.
func (r *Run) datasets(path string) (all []runrecord.Dataset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.record.Outputs {
		if at := d.Path.Reveal(); at == path || strings.HasPrefix(at, strings.TrimSuffix(path, "/")+"/") {
			all = append(all, d)
		}
	}
	return all
}

// stored returns the size of an output in bytes: of a file its size on disk, of a folder the bytes that the run wrote,
// since measuring a million chunks takes long. It is 0 if they were not counted.
func (r *Run) stored(path string) int64 {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return r.Meter.BytesWritten()
}
