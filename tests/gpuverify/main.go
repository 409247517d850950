// Command gpuverify measures a machine with a GPU, and compares the outputs of the stages there with those of the
// CPU. scripts/gpu-verify.sh packs it for a machine without any tools, and calls it once for each section, with a
// time limit for each.
//
//	gpuverify -section start -json gpu-verify.json     reads the record, adds a section, writes it
//	gpuverify -print -json gpu-verify.json             prints the record as Markdown
//	gpuverify -shim pkg/gpu/driver.go                  prints the source of a library that times the driver's calls
//	gpuverify -figures figures.tsv -json gpu-verify.json   puts the measurements into the model's table
//	gpuverify -merge FOLDER                            puts a machine's results among the records, and into the page
//
// README.md beside this file lists the sections.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"strata/pkg/gpu"
)

// record holds the results; sections add to it.
type record struct {
	Started time.Time `json:"started"`
	GPU     gpu.Info  `json:"gpu"`
	Driver  string    `json:"driver"` // newest CUDA that it knows
	Commit  string    `json:"commit"`

	Start              *start             `json:"start,omitempty"`
	Copies             []copied           `json:"copies,omitempty"`
	CopyBytesPerSecond float64            `json:"copy_bytes_per_second"` // on the device, read and written
	Kernels            []measure          `json:"kernels,omitempty"`
	NVCOMP             string             `json:"nvcomp"` // version, or why it cannot be used
	Chunks             []chunks           `json:"chunks,omitempty"`
	Runs               []timed            `json:"runs,omitempty"`   // stages on tiles of real size, by their time
	Stages             []stage            `json:"stages,omitempty"` // stages, by their voxels
	StartSeconds       float64            `json:"start_seconds"`    // of a stage on the GPU beyond one on the CPU
	Peer               peer               `json:"peer"`
	Figures            map[string]float64 `json:"figures"` // for the model, by its names, in seconds and bytes per second
}

// figure records a figure of the model.
func (r *record) figure(name string, v float64) {
	if r.Figures == nil {
		r.Figures = map[string]float64{}
	}
	r.Figures[name] = v
}

// Set by the linker.
var commit = "unknown"

// settings holds the flags.
type settings struct {
	bin, work, placed, out string
	tile, large            string
	peers, module          string
	bytes                  int64
	repeat, across         int
	limit                  time.Duration
}

// sections maps names to the measurements.
var sections = map[string]func(ctx context.Context, s *settings, r *record) error{
	"start":       measureStarts,
	"copies":      onDevice(measureCopies),
	"kernels":     onDevice(measureSides),
	"nvcomp":      onDevice(measureGrid),
	"stages":      timeStages,
	"correctness": compareStages,
	"peers":       comparePeers,
}

func main() {
	var s settings
	section := flag.String("section", "", "what to measure and add to the record")
	show := flag.Bool("print", false, "write the record as Markdown")
	figures := flag.String("figures", "", "table of the model to put the record's figures into")
	driver := flag.String("shim", "", "source of the driver's binding: print that of a library that times its calls")
	results := flag.String("merge", "", "folder of a machine's results to put into the records and "+page+`; "none": only write the page`)
	records := flag.String("records", "tests/gpuverify/records", "folder of the records")
	flag.StringVar(&s.bin, "bin", "bin", "folder of the programs")
	flag.StringVar(&s.work, "work", "", "folder for data (default: a temporary one)")
	flag.StringVar(&s.out, "json", "gpu-verify.json", "the record")
	mib := flag.Int64("mib", 512, "size of what kernels work on, in MiB")
	flag.IntVar(&s.repeat, "repeat", 20, "how often each kernel runs; the median counts")
	flag.StringVar(&s.tile, "tile", "100,256,256", "size of the phantom's tiles: Z,Y,X")
	flag.StringVar(&s.large, "large", "200,512,512", "size of the tiles where stages are timed: Z,Y,X")
	flag.IntVar(&s.across, "across", 6, "number of these tiles along y and x")
	flag.StringVar(&s.placed, "place", "/dev/shm", "folder for the data of stages that are timed")
	flag.StringVar(&s.peers, "peers", "", "script of the peer (default: none)")
	flag.StringVar(&s.module, "module", "cupy", "array module of the peer")
	flag.DurationVar(&s.limit, "limit", 9*time.Minute, "begin nothing after so long")
	flag.Parse()
	s.bytes = *mib << 20
	var err error
	switch {
	case *driver != "":
		err = shim(os.Stdout, *driver)
	case *results == "none":
		err = merge("", *records, page)
	case *results != "":
		err = merge(*results, *records, page)
	default:
		err = run(&s, *section, *figures, *show)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpuverify:", err)
		os.Exit(1)
	}
}

func run(s *settings, section, figures string, show bool) error {
	r, err := load(s.out)
	if err != nil {
		return err
	}
	switch measure, ok := sections[section]; {
	case ok:
		return s.add(r, measure)
	case section != "":
		return fmt.Errorf("there is no section %q", section)
	case figures != "":
		return fillIn(figures, r)
	case show:
		r.print(os.Stdout)
		return r.wrong()
	}
	return errors.New("give -section, -figures, -print, -merge or -shim")
}

// load reads a record, or returns a new one.
func load(file string) (*record, error) {
	r := &record{Started: time.Now().UTC(), Commit: commit}
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// save writes the record, whole or not at all.
func (r *record) save(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".part", append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// add runs a section and writes the record, including what the section found before it failed.
func (s *settings) add(r *record, measure func(context.Context, *settings, *record) error) error {
	ctx, stop := context.WithTimeout(context.Background(), s.limit)
	defer stop()
	if s.work == "" {
		work, err := os.MkdirTemp("", "gpuverify-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		s.work = work
	}
	err := measure(ctx, s, r)
	return errors.Join(err, r.save(s.out))
}

// onDevice opens the first device for a section.
func onDevice(measure func(s *settings, d *gpu.Device, r *record) error) func(context.Context, *settings, *record) error {
	return func(_ context.Context, s *settings, r *record) (err error) {
		list, err := gpu.Devices()
		if err != nil {
			return err
		}
		r.GPU, r.Driver = list[0], list[0].Driver.String()
		d, err := gpu.Open(list[0], gpu.Limits{Memory: max(6*s.bytes+64<<20, 0), Pinned: max(64<<20, s.bytes)})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		return measure(s, d, r)
	}
}

func measureSides(s *settings, d *gpu.Device, r *record) error {
	r.Kernels = nil
	for _, side := range []int{1024, 256} { // of large planes, and of tiles
		if err := measureKernels(d, r, side, s.bytes, s.repeat); err != nil {
			return err
		}
	}
	r.figure("memory", r.CopyBytesPerSecond)
	var shares []float64
	for _, k := range r.Kernels {
		shares = append(shares, k.OfCopy)
	}
	slices.Sort(shares)
	r.figure("memory_share", shares[len(shares)/2])
	return nil
}

func compareStages(ctx context.Context, s *settings, r *record) error {
	r.Stages = nil
	if err := runStages(ctx, s.bin, s.work, s.tile, r); err != nil {
		return err
	}
	if err := measureStart(ctx, s.bin, s.work, max(3, s.repeat/2), r); err != nil {
		return err
	}
	return r.wrong()
}

func comparePeers(ctx context.Context, s *settings, r *record) error {
	r.Peer = peer{}
	if s.peers == "" {
		return errors.New("-peers names no script")
	}
	return runPeers(ctx, s.bin, s.work, s.peers, s.module, s.tile, r)
}

// wrong returns the first result that differs from the CPU's.
func (r *record) wrong() error {
	for _, c := range r.Chunks {
		if !c.Same {
			return fmt.Errorf("chunks of %s are not the host's: %s", c.Codec, c.Error)
		}
	}
	for _, s := range r.Stages {
		if !s.Same {
			return fmt.Errorf("%s: the voxels are not the CPU's", s.Name)
		}
	}
	return nil
}

// fillIn writes the record's figures into the model's table, a file of tab-separated lines: figure, unit, a column
// for each GPU model, source.
func fillIn(file string, r *record) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := filledIn(string(b), r)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return os.WriteFile(file, []byte(text), 0o666)
}
