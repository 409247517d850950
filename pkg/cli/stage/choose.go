package stage

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/gpu"
	"strata/pkg/gpu/cost"
	"strata/pkg/gpu/kernels"
	"strata/pkg/host"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/runrecord"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Work describes the work of a stage as far as it determines how long the stage takes.
type Work struct {
	Stage string        // as package cost knows it
	In    []*zarr.Array // level 0 of each input
	Out   float64       // bytes of the output's level 0 for each of the input; 0: as many as the stage usually makes

	voxel []float64 // sizes of the inputs' voxels, in µm
}

// Of returns the work of the stage with the given name on some images.
func Of(name string, in ...*ngff.Image) Work {
	w := Work{Stage: name}
	for _, im := range in {
		w.In = append(w.In, im.Levels[0].Array)
		w.voxel = im.VoxelSize
	}
	return w
}

// At sets the voxel size of the output in µm, from which its size follows.
func (w *Work) At(size [3]float64) {
	if len(w.voxel) < len(size) {
		return
	}
	w.Out = 1
	for d, v := range w.voxel[len(w.voxel)-len(size):] {
		w.Out *= v / size[d]
	}
}

// model holds what is known of the machine's speed, including figures from the environment.
type model struct {
	gpu, host cost.Figures
	pinned    int64 // bytes of page-locked memory that a process may take
}

func newModel() (model, error) {
	gpu, cpu, err := cost.ParseFigures(os.Getenv(cost.Variable))
	if err != nil {
		return model{}, cli.Usage("variable %s: %w", cost.Variable, err)
	}
	return model{gpu, cost.HostFigures().With(cpu), pinnedMemory(host.CgroupLimits().Memory, host.Memory())}, nil
}

// tries returns how often each way of decoding and encoding is tried.
func (m model) tries() int { return int(m.host["tries"]) }

// question holds the facts that decide whether starting a GPU pays.
type question struct {
	job  cost.Job
	host cost.Host
	auto bool   // the device may decode and encode
	id   string // of the devices that are allowed; "": all
	runs int    // that share the start of the device; 0: it has started
}

func (m model) question(ctx context.Context, r *cli.Run, w Work) question {
	auto := r.Options.Backend == "auto"
	host := cost.Host{Cores: min(r.Options.Threads, runtime.GOMAXPROCS(0)), Figures: m.host}
	return question{w.job(ctx, r, auto), host, auto, r.Options.GPU, r.Starts()}
}

// Where a run computes, in its record.
const (
	onCPU = "cpu"
	onGPU = "gpu"
)

// choose returns where a run computes; nil if there is no device, of which whoever asks for it says why. No device is
// opened.
func (m model) choose(q question) (*runrecord.Choice, error) {
	list, err := usable(q.id)
	if err != nil {
		return nil, nil
	}
	best, err := m.fastest(q.job, q.host, list, q.runs)
	if err == nil && q.auto && (best.DeviceDecodes || best.DeviceEncodes) && gpu.NVCOMPLibrary().Reason != "" {
		q.job.In.Device, q.job.Out.Device = false, false
		best, err = m.fastest(q.job, q.host, list, q.runs)
	}
	if err != nil {
		return nil, err
	}
	c := runrecord.Choice{On: onCPU, CPUSeconds: best.Host.Seconds, GPUSeconds: best.Best.Seconds, Reason: best.String()}
	if best.GPU {
		c.On = onGPU
	}
	return &c, nil
}

// joins reports whether a run may begin on the CPU, and a device join it: it is free to choose, and nobody has asked
// for a device whatever it costs. Without a driver whoever asks for a device says so at once.
func (m model) joins(r *cli.Run) bool {
	return r.MayChoose() && !r.Batched() && m.host["joins"] != 0 && m.host["margin"] > -1 && r.Options.GPUFiles.Compat != settings.Off &&
		gpu.DriverLibrary().Reason == ""
}

// firstOnDevice is the assumed duration of the first pieces of work on a device. They load the code that decodes and
// encodes; an H100 at first encoded only 20 to 70 MB/s.
const firstOnDevice = 500 * time.Millisecond

// careful is the factor by which the expected duration of a piece of work on a device is raised until one has been
// measured.
const careful = 2

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// expected returns a device that is being initialised, with the expected speeds of the device and of the CPU.
func expected(c cost.Choice) *oct.Coming {
	return oct.NewComing(firstOnDevice, duration(careful*c.Piece()), duration(c.Host.Seconds))
}

// later takes a device into use beside the work of a stage, if it is expected to be worth it.
func (m model) later(ctx context.Context, r *cli.Run, w Work, res *oct.Resources) error {
	q := m.question(ctx, r, w)
	best, err := m.fastest(q.job, q.host, known(), q.runs)
	if err != nil {
		return err
	}
	if !best.GPU { // no driver is started, which takes a tenth of a second to say which GPUs there are
		alone, err := cost.Choose(q.job, q.host, nil)
		r.Chose(runrecord.Choice{On: onCPU, CPUSeconds: best.Host.Seconds, GPUSeconds: best.Best.Seconds, Reason: fmt.Sprintf("%v; a GPU takes %.2g s or more", alone, best.Best.Seconds)})
		return err
	}
	coming := expected(best)
	res.Coming = coming
	r.Later(ctx, func() bool {
		c, err := m.choose(q)
		if c != nil && err == nil {
			r.Chose(*c)
		}
		return c == nil || c.On == onGPU
	}, func(d cli.Device) {
		if d == nil {
			coming.Settle(nil)
			return
		}
		coming.Settle(func(res *oct.Resources) { m.add(r, d.(*device), res) })
	})
	return nil
}

// known returns a GPU of each model that has figures: no other is expected to be faster than all of these.
func known() (all []gpu.Info) {
	for _, m := range cost.Models() {
		all = append(all, gpu.Info{Name: m.Name, Compute: m.Compute, Driver: newestDriver})
	}
	return all
}

// newestDriver is as good as any: it runs all machine code that ships.
const newestDriver = math.MaxInt

// fastest returns the choice for the device that would do the job in the shortest time. Its start is shared by so
// many jobs; 0: it was before.
func (m model) fastest(j cost.Job, h cost.Host, list []gpu.Info, jobs int) (best cost.Choice, err error) {
	for i, info := range list {
		d := m.device(info, j, h.Cores)
		d.Started, d.Jobs = jobs == 0, jobs
		c, err := cost.Choose(j, h, d)
		if err != nil {
			return best, err
		}
		if i == 0 || c.Best.Seconds < best.Best.Seconds {
			best = c
		}
	}
	return best, nil
}

// device is a GPU as the model sees it: as many workers as have regions to do and page-locked memory for them.
func (m model) device(i gpu.Info, j cost.Job, cores int) *cost.Device {
	const each = 6 // regions' worth of page-locked memory that a worker takes, on their way in and out
	region := max(j.In.Region, 1)
	workers := max(1, min(int64(cores), j.In.Bytes/region, m.pinned/(each*region)))
	name, of := cost.ForGPU(i.Name, i.Compute)
	return &cost.Device{Model: name, Figures: of.With(m.gpu), Workers: int(workers), Pinned: min(m.pinned, workers*each*region), Cubins: kernels.Precompiled(i)}
}

// job describes the work to the model. auto says that the device may decode and encode.
func (w Work) job(ctx context.Context, r *cli.Run, auto bool) cost.Job {
	j := cost.Job{Stage: w.Stage}
	for i, a := range w.In {
		n := min(datasets.Bytes(a), vast)
		if i == 0 {
			j.In = coded(a.Codecs(), bytesOf(a, a.Chunks()), auto)
			j.In.Device = j.In.Device && a.Elementary() == nil
		}
		j.In.Bytes = min(j.In.Bytes, vast) + n
		j.In.Stored = min(j.In.Stored, vast) + int64(float64(n)*stored(ctx, a))
	}
	if len(w.In) == 0 {
		return j
	}
	first, o := w.In[0], r.Options
	tile := bytesOf(first, first.Chunks())
	if o.Chunks != nil {
		tile = bytesOf(first, o.Chunks)
	}
	codecs, err := codec.FromFlag(o.Codec, first.DType(), o.ZarrFormat)
	if err == nil {
		j.Out = coded(codecs, tile, auto)
		_, err = codecs.Packing(1 << 20) // chunks of any size but tiny ones
		j.Out.Device = auto && err == nil
	}
	if out := float64(j.In.Bytes) * w.Out; out > 0 {
		j.Out.Bytes = int64(min(out, vast))
	}
	return j
}

// vast is more bytes than an array has of which nobody made up the shape: sums of two of them are numbers, too.
const vast = 1 << 60

// bytesOf is the size of a box of an array, or vast.
func bytesOf(a *zarr.Array, shape []int) int64 {
	n := int64(a.DType().Size())
	for _, k := range shape {
		if n > vast/int64(max(k, 1)) {
			return vast
		}
		n *= int64(k)
	}
	return n
}

// coded describes how chunks of so many bytes are stored.
func coded(c codec.Chain, chunk int64, auto bool) cost.Array {
	a := cost.Array{Device: auto && c.InPieces() == nil}
	chunks := max(1, transfer.DevicePiece/max(chunk, 1)) // of a region
	a.Region = chunks * chunk
	format, streams, _ := c.Streams(int(chunk))
	a.Streams = chunks * int64(streams)
	c = c.Bare()
	switch {
	case len(c) == 0:
		a.Codec = cost.Raw
	case strings.Contains(c[len(c)-1].Name(), "blosc"):
		a.Codec = cost.Blosc
	default:
		a.Codec = map[codec.StreamFormat]cost.Codec{codec.StreamZstd: cost.Zstd, codec.StreamLZ4: cost.LZ4}[format]
		if a.Codec == "" {
			a.Codec = cost.Deflate // others are as slow
		}
	}
	return a
}

// samples is the number of chunks of an array that are inspected to estimate its compression ratio.
const samples = 4

// stored estimates the bytes of an array as it is stored, for each of the decoded: from the sizes of some
// chunks along its diagonal, if they lie near; else it is 1.
func stored(ctx context.Context, a *zarr.Array) float64 {
	if far, ok := a.Store().(store.Distant); len(a.Codecs()) == 0 || ok && far.Requests() > 0 {
		return 1
	}
	a = a.With(zarr.NoteMissing(nil), zarr.Meter(nil), zarr.Workers(1))
	shape, chunk := a.Shape(), a.Chunks()
	var n, chunks int64
	for i := range samples {
		r := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
		for d, s := range shape {
			r.Start[d] = s * (2*i + 1) / (2 * samples) / chunk[d] * chunk[d]
			r.Shape[d] = min(1, s)
		}
		err := a.Located(ctx, r, func(_ *zarr.ChunkFile, list []zarr.Located) error {
			for _, c := range list {
				n += max(c.Size, 0)
				chunks++
			}
			return nil
		})
		if err != nil { // whoever reads it says what is wrong
			return 1
		}
	}
	if n == 0 {
		return 1
	}
	return float64(n) / float64(chunks) / float64(bytesOf(a, chunk))
}
