package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"strata/cmd/internal/iobench"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/gpu"
	"strata/pkg/settings"
	"strata/pkg/sysinfo"
	"strata/pkg/units"
)

// benchCommand returns the command "doctor bench".
func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure how fast a file or folder is read and written, by each way that the stages have",
		Description: "Measures a folder by writing a file of its own there, reading it and removing it. Only reads if PATH is a file\n" +
			"or a Zarr array, if the folder is not writable, and with --no-write; of a folder it then reads the largest\n" +
			"files. Changes nothing that exists.\n\n" +
			"The ways are those of the stages' --backend: host (through the page cache, which first drops the file), direct\n" +
			"(past the page cache), mmap, bounce (to and from a GPU through host memory) and gds (directly between file and\n" +
			"GPU). A way that is unavailable is listed with the reason. Each way is measured in rounds; the table has the\n" +
			"median, slowest and fastest round. A round of writing ends when the data are on the storage device.\n\n" +
			"Number of threads and size of requests are those of the stages' GPU file options; STRATA_GDS_THREADS and\n" +
			"STRATA_TASK_SIZE set them. At most 128 MiB are in flight.\n\n" +
			"--json writes the fields path; made: whether a file was made; reason: why not, although it should have been;\n" +
			"files; bytes: of the files; file_system; threads; block_bytes; gpu (index, name, uuid) or null; gpu_reason;\n" +
			"results (way, op: \"read\" or \"write\", bytes, seconds, rounds, bytes_per_second, slowest, fastest, cached_percent:\n" +
			"part of the file that stayed in the page cache, or null, reason: why it was not measured, remark: how the\n" +
			"measurement differs from the way's name); advice.",
		Args: []cli.Arg{{Name: "PATH", Usage: "file or folder to measure"}},
		Flags: []cli.Flag{
			{Name: "seconds", Kind: cli.Float, Default: "10", Check: cli.Between(0.05, 3600), Usage: "total time for all measurements, in seconds, 0.05 to 3600"},
			{Name: "write", Kind: cli.Bool, Default: "true", Usage: "measure writing, too, if PATH is a folder"},
			{Name: "size", Kind: cli.Size, Note: "1 GiB, at most a quarter of the free space", Check: cli.AtLeast(iobench.Least), Usage: "size of the file to write"},
			{Name: "use_gpu", Kind: cli.Bool, Default: "true", Usage: "measure the ways to and from a GPU, if there is one"},
			{Name: "gpu", Value: "ID", Note: "the one with most free memory", Usage: "index or UUID of the GPU to measure"},
			{Name: "json", Kind: cli.Bool, Usage: "print JSON instead of text"},
		},
		Examples: []cli.Example{
			{Command: "doctor bench /data", Usage: "writing and reading in a folder"},
			{Command: "doctor bench mosaic.ome.zarr --seconds 30", Usage: "reading the files of an array"},
			{Command: "srun --gres=gpu:1 doctor bench /scratch --json", Usage: "what a job on a GPU node gets"},
		},
		Run: cli.Do(runBench),
	}
}

// benchReport holds the measurements, as --json writes them.
type benchReport struct {
	Path       string        `json:"path"`
	Made       bool          `json:"made"`
	Reason     string        `json:"reason"`
	Files      int           `json:"files"`
	Bytes      int64         `json:"bytes"`
	FileSystem string        `json:"file_system"`
	Threads    int           `json:"threads"`
	Block      int64         `json:"block_bytes"`
	GPU        *benchGPU     `json:"gpu"`
	GPUReason  string        `json:"gpu_reason"`
	Results    []benchResult `json:"results"`
	Advice     string        `json:"advice"`
}

type benchGPU struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
}

type benchResult struct {
	Way     string  `json:"way"`
	Op      string  `json:"op"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Rounds  int     `json:"rounds"`
	Rate    float64 `json:"bytes_per_second"`
	Slowest float64 `json:"slowest"`
	Fastest float64 `json:"fastest"`
	Cached  *int64  `json:"cached_percent"`
	Reason  string  `json:"reason"`
	Remark  string  `json:"remark"`
}

func runBench(ctx context.Context, r *cli.Run) error {
	path := r.Arg("PATH")
	s, err := settings.Environment()
	if err != nil {
		return cli.Usage("%w", err)
	}
	threads := s.Threads
	if threads == 0 {
		threads = min(runtime.GOMAXPROCS(0), settings.MostThreads)
	}
	if r.IsSet("write") && r.Bool("write") && !iobench.IsFolder(path) {
		return cli.Usage("flag --write needs a folder: a file that is there, such as %s, is only read", path)
	}
	data, err := iobench.Target(ctx, path, iobench.Options{Write: r.Bool("write"), Asked: r.IsSet("write"), Size: r.Size("size")})
	if err != nil {
		return err
	}
	defer data.Remove()
	defer context.AfterFunc(ctx, data.Remove)() // at once, however long the system takes with what is under way

	b := &measurer{Bench: iobench.Bench{Data: data, Settings: s, Threads: threads, Block: blockOf(s.TaskSize, threads)}, ways: benchWays}
	if err := b.Allocate(); err != nil {
		return err
	}
	defer b.Free()
	report := &benchReport{Path: path, Made: data.Made, Reason: data.Why, Threads: threads, Block: b.Block, FileSystem: fileSystemOf(ctx, path), Results: []benchResult{}}
	if err := b.takeGPU(r, report); err != nil {
		return err
	}
	seconds := time.Duration(r.Float("seconds") * float64(time.Second))
	r.Log.Info().Msgf("measuring %s for %s", path, seconds)
	err = errors.Join(b.all(ctx, report, seconds), b.giveGPU())
	if err != nil {
		return err
	}
	report.Files, report.Bytes = len(data.Files), data.Bytes()
	report.Advice = report.advise()
	if r.Bool("json") {
		return writeJSON(r.Stdout, report)
	}
	return report.print(r.Stdout)
}

// mostUnderWay is the maximum number of bytes that all threads have in flight.
const mostUnderWay = 128 << 20

// blockOf returns the bytes that a thread takes at a time: the size of the stages' tasks, in whole pages.
func blockOf(task int64, threads int) int64 {
	return max(min(task, mostUnderWay/int64(threads))/iobench.Page*iobench.Page, iobench.Page)
}

// fileSystemOf returns the type of a path's file system, or "" if it is unknown.
func fileSystemOf(ctx context.Context, path string) string {
	m := sysinfo.Read(ctx, sysinfo.Live(), sysinfo.Options{Path: path, NoTools: true})
	if m.Path == nil {
		return ""
	}
	return m.Path.Mount.Type
}

// measurer measures files in several ways.
type measurer struct {
	iobench.Bench
	ways []benchWay
}

// benchWay is a way in one direction.
type benchWay struct {
	iobench.Way
	write bool
}

// benchWays lists the ways in the order of measurement: what is written first can then be read.
var benchWays = func() (list []benchWay) {
	for _, w := range iobench.Ways {
		if w.Write {
			list = append(list, benchWay{w, true})
		}
	}
	for _, w := range iobench.Ways {
		list = append(list, benchWay{w, false})
	}
	return list
}()

// takeGPU opens the device to measure, if there is one.
func (b *measurer) takeGPU(r *cli.Run, report *benchReport) error {
	info, err := benchDevice(r)
	if err == nil {
		b.Device, err = iobench.OpenDevice(info, b.Block, b.Threads)
	}
	if err != nil {
		b.NoDevice = gpu.Reason(err)
		report.GPUReason = b.NoDevice
		if r.IsSet("gpu") {
			return cli.GPUFailure(err)
		}
		return nil
	}
	report.GPU = &benchGPU{info.Index, info.Name, info.UUID}
	return nil
}

// benchDevice returns the requested device, or the one with most memory available.
func benchDevice(r *cli.Run) (gpu.Info, error) {
	if !r.Bool("use_gpu") {
		return gpu.Info{}, &gpu.Unavailable{Reason: "--no-use_gpu is given"}
	}
	best := ""
	if r.String("gpu") == "" {
		if g := listGPUs().best(); g != nil {
			best = g.UUID
		}
	}
	return iobench.ChooseDevice(r.String("gpu"), best)
}

func (b *measurer) giveGPU() error {
	if b.Device == nil {
		return nil
	}
	return b.Device.Close()
}

// all measures every available way; each gets its share of the remaining time.
func (b *measurer) all(ctx context.Context, report *benchReport, total time.Duration) error {
	var list []benchWay
	possible := 0
	for _, w := range b.ways {
		if !b.Data.Made && w.write {
			continue
		}
		list = append(list, w)
		if b.Device != nil || !w.Device {
			possible++
		}
	}
	for _, w := range list {
		result := benchResult{Way: w.Name, Op: "read"}
		if w.write {
			result.Op = "write"
		} else if err := b.Data.Trim(); err != nil {
			return fmt.Errorf("%s: %w", report.Path, err)
		}
		began := time.Now()
		got, remark, err := b.one(ctx, w, total/time.Duration(max(possible, 1)))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if b.Device != nil || !w.Device {
			possible--
		}
		total -= time.Since(began)
		if err != nil {
			result.Reason = gpu.Reason(err)
		}
		result.Remark = remark
		result.fill(got)
		report.Results = append(report.Results, result)
	}
	for _, result := range report.Results {
		if result.Rounds > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s: nothing could be measured: %s", report.Path, report.Results[0].Reason)
}

// one measures one way.
func (b *measurer) one(ctx context.Context, w benchWay, share time.Duration) (got measured, remark string, err error) {
	m, err := w.Open(&b.Bench, w.write)
	if err != nil {
		return got, "", err
	}
	got, err = b.measure(ctx, m, w.write, max(share, time.Millisecond))
	remark, closing := m.Close()
	return got, remark, errors.Join(err, closing)
}

const rounds = 5 // that a way is measured in, unless the files end before

// measured is the result of a measurement.
type measured struct {
	samples []iobench.Sample
	cached  *int64 // percentage of the data that the page cache still holds
}

// measure moves data in one way for some time. A round ends after a pass over the files, or after its share of the
// time.
func (b *measurer) measure(ctx context.Context, m iobench.Mover, write bool, share time.Duration) (got measured, err error) {
	next := int64(0) // part, of those of all passes
	all := b.Data.Count(b.Block)
	for end := time.Now().Add(share); time.Now().Before(end) || len(got.samples) == 0; {
		if _, ok := m.(iobench.Cached); ok && !write {
			f, fresh := m.(iobench.Fresh)
			if fresh {
				if err := f.Rest(); err != nil {
					return got, err
				}
			}
			if cached := b.Drop(); got.cached == nil {
				got.cached = cached
			}
			if fresh {
				if err := f.Fresh(); err != nil {
					return got, err
				}
			}
		}
		s, n, err := b.Round(ctx, m, iobench.Pass{Write: write, First: next, Count: all, Limit: share / rounds})
		if err != nil {
			return got, err
		}
		next += n
		got.samples = append(got.samples, s)
	}
	return got, nil
}

// rates returns the median, the minimum and the maximum of the samples in bytes per second.
func rates(list []iobench.Sample) (middle, least, most float64) {
	var all []float64
	for _, s := range list {
		all = append(all, s.Rate())
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	return bench.Median(all), slices.Min(all), slices.Max(all)
}

func (r *benchResult) fill(got measured) {
	for _, s := range got.samples {
		r.Bytes += s.Bytes
		r.Seconds += s.Took.Seconds()
	}
	r.Rounds, r.Cached = len(got.samples), got.cached
	r.Rate, r.Slowest, r.Fastest = rates(got.samples)
}

// advise explains in one line what the numbers mean for --backend.
func (r *benchReport) advise() string {
	read := map[string]*benchResult{}
	var best *benchResult
	for i := range r.Results {
		x := &r.Results[i]
		if x.Op != "read" || x.Rounds == 0 {
			continue
		}
		read[x.Way] = x
		if x.Way != "bounce" && x.Way != "gds" && (best == nil || x.Rate > best.Rate) {
			best = x
		}
	}
	host, gds, bounce := read["host"], read["gds"], read["bounce"]
	switch {
	case host != nil && host.Cached != nil && *host.Cached > 50:
		return "the files stay in memory, so that reading them does not measure storage: measure the folder that holds your data"
	case gds != nil && gds.Remark != "":
		return "files do not reach the GPU directly here: " + gds.Remark
	case gds != nil && bounce != nil && gds.Rate >= bounce.Rate:
		return fmt.Sprintf("files reach the GPU directly, %s as fast as through host memory: leave --backend at auto", times(gds.Rate, bounce.Rate))
	case gds != nil && bounce != nil:
		return fmt.Sprintf("through host memory, files reach the GPU %s as fast as directly: give --backend bounce", times(bounce.Rate, gds.Rate))
	case best != nil && host != nil && best != host && best.Rate > 1.15*host.Rate:
		return fmt.Sprintf("%s reads %s as fast as the page cache does: give --backend %s for data that is read once", best.Way, times(best.Rate, host.Rate), best.Way)
	case bounce != nil:
		return "files reach the GPU through host memory: doctor " + bench.Quote(r.Path) + " says what a direct way needs"
	}
	return "all ways are about as fast: leave --backend at auto"
}

func times(a, b float64) string { return fmt.Sprintf("%.1f times", a/max(b, 1)) }

func (r *benchReport) print(w io.Writer) error {
	var b strings.Builder
	what := units.FormatSize(r.Bytes) + " were read"
	switch {
	case r.Made:
		what = "a file of " + units.FormatSize(r.Bytes) + " was written and read"
	case r.Files > 1:
		what = fmt.Sprintf("%s of together %s were read", units.Count(r.Files, "file"), units.FormatSize(r.Bytes))
	}
	fmt.Fprintf(&b, "%s: %s", bench.Plain(r.Path), what)
	if r.FileSystem != "" {
		fmt.Fprintf(&b, ", on %s", bench.Plain(r.FileSystem))
	}
	fmt.Fprintf(&b, "; %s, %s at a time\n", units.Count(r.Threads, "thread"), units.FormatSize(r.Block))
	if r.Reason != "" {
		fmt.Fprintf(&b, "no file was made: %s\n", bench.Plain(r.Reason))
	}
	if r.GPU != nil {
		fmt.Fprintf(&b, "GPU %d: %s\n", r.GPU.Index, bench.Plain(r.GPU.Name))
	} else {
		fmt.Fprintf(&b, "no GPU: %s\n", bench.Plain(r.GPUReason))
	}
	fmt.Fprintf(&b, "  %-12s %8s  %s\n", "", "GiB/s", "slowest to fastest round")
	for _, x := range r.Results {
		name := x.Op + " " + x.Way
		if x.Rounds == 0 {
			why := x.Reason
			if r.GPU == nil && why == r.GPUReason {
				why = "no GPU"
			}
			fmt.Fprintf(&b, "  %-12s %8s  %s\n", name, "-", bench.Plain(why))
			continue
		}
		fmt.Fprintf(&b, "  %-12s %8s  %s to %s (%s)", name, bench.GiBs(x.Rate), bench.GiBs(x.Slowest), bench.GiBs(x.Fastest), units.Count(x.Rounds, "round"))
		if x.Cached != nil && *x.Cached > 0 {
			fmt.Fprintf(&b, "; %d%% of the file stayed in the page cache", *x.Cached)
		}
		for _, more := range []string{x.Remark, x.Reason} {
			if more != "" {
				fmt.Fprintf(&b, "; %s", bench.Plain(more))
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s\n", bench.Plain(r.Advice))
	_, err := io.WriteString(w, b.String())
	return err
}
