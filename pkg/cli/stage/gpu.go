package stage

import (
	"context"
	"errors"
	"sync/atomic"

	"strata/pkg/cli"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/lease"
	"strata/pkg/gpu/trial"
	"strata/pkg/host"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/zarrgpu"
)

// GPU is the accelerator of stages. Of the devices that --gpu names (by default all), it takes the one with the most
// memory to lease. If other processes of the node have leased all memory, it waits its turn.
func GPU(ctx context.Context, r *cli.Run) (cli.Device, error) {
	d, err := open(ctx, r)
	var no *gpu.Unavailable
	switch {
	case errors.As(err, &no) && no.NoDriver:
		return nil, cli.NoDriver(errors.New(no.Reason))
	case no != nil:
		return nil, errors.New(no.Reason)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// memoryOnDevice is the device memory that a stage asks for, as a multiple of --mem or of its smallest default. It is
// more than 1 since a device holds several copies of a tile, before and after every operator, and idles if it holds too
// few tiles.
const memoryOnDevice = 8

// mostPinned is the most page-locked memory that a stage takes: a few regions on their way in and out for each of
// many workers. Page-locked memory cannot be swapped, and locking it takes time.
const mostPinned = 4 << 30

// pinnedMemory returns the page-locked memory that a process may take: an eighth of what its control group allows,
// which may be nil, or of the machine's memory. It is besides --mem, which is for buffers of stages on the CPU.
func pinnedMemory(group *int64, machine int64) int64 {
	n := int64(mostPinned)
	if machine > 0 {
		n = min(n, machine/8)
	}
	if group != nil {
		n = min(n, *group/8)
	}
	return n
}

// usable lists the devices, of those that --gpu names, or of all, that can run the kernels.
func usable(id string) (out []gpu.Info, err error) {
	list, err := gpu.Devices()
	if err != nil {
		return nil, err
	}
	if list, err = gpu.Choose(list, id); err != nil {
		return nil, err
	}
	for _, i := range list {
		if no := i.Usable(); no != nil {
			err = no
			continue
		}
		out = append(out, i)
	}
	if out == nil {
		return nil, err
	}
	return out, nil
}

func open(ctx context.Context, r *cli.Run) (*device, error) {
	list, err := usable(r.Options.GPU)
	if err != nil {
		return nil, err
	}
	var devices []lease.Device
	infos := map[string]gpu.Info{}
	largest := int64(0)
	for _, i := range list {
		d := lease.Device{UUID: i.UUID, Memory: i.Memory}
		devices, infos[i.UUID], largest = append(devices, d), i, max(largest, d.Grantable())
	}
	n := r.Options.GPUMem
	if n == 0 {
		n = min(memoryOnDevice*r.Options.AssuredMem(), largest)
	}
	opened := &device{}
	opened.Begin(r)
	l, err := lease.Acquire(ctx, "", devices, n, lease.Options{
		Wait: func(text string) { r.Log.Info().Msg(text) },
		Warn: opened.warn,
	})
	if err != nil {
		return nil, err
	}
	d, err := gpu.Open(infos[l.Device().UUID], gpu.Limits{Memory: n, Pinned: pinnedMemory(host.CgroupLimits().Memory, host.Memory())})
	if err != nil {
		return nil, errors.Join(err, l.Release())
	}
	kernels.Load(d)
	how := r.Options.GPUFiles
	if how.Threads == 0 {
		how.Threads = r.Options.Threads
	}
	files, err := filelayer.NewPool(d, how, opened.warn)
	if err != nil {
		if err := errors.Join(d.Close(), l.Release()); err != nil {
			r.Warn("release the GPU: %v", err)
		}
		return nil, cli.Usage("%w; give --compat_mode auto", err)
	}
	if r.Options.Backend == "gds" {
		files.Demand()
	}
	opened.Device, opened.lease, opened.files = d, l, files
	return opened, nil
}

// device is a leased GPU as the command line sees it.
type device struct {
	*gpu.Device
	lease *lease.Lease
	files *filelayer.Pool
	run   atomic.Pointer[cli.Run] // that uses it

	// What the run has done with it, and what runs before it had.
	ways   *zarrgpu.Counts
	tried  *trial.Book // nil: nothing is tried
	before moved
}

// moved counts the bytes copied to (up) and from (down) a device, the bytes among them that were read or written by
// direct file access, and the pieces for which direct access failed.
type moved struct{ up, down, straightUp, straightDown, fallbacks int64 }

func (d *device) moved() (m moved) {
	m.up, m.down, _ = d.Traffic()
	m.straightUp, m.straightDown, m.fallbacks = d.Straight()
	return m
}

// Begin tells the device which run uses it from here on.
func (d *device) Begin(r *cli.Run) {
	d.run.Store(r)
	d.ways, d.tried = new(zarrgpu.Counts), nil
	if d.Device != nil {
		d.before = d.moved()
		d.Memory().ForgetPeak()
	}
}

// warn gives a warning to the run that uses the device.
func (d *device) warn(text string) { d.run.Load().Warn("%s", text) }

// Record returns the device's entry for the run record and its peak memory in bytes, and logs the trials.
func (d *device) Record() (runrecord.GPU, int64) {
	tellTrials(d.run.Load(), d.tried.Outcomes())
	now, before := d.moved(), d.before
	g := runrecord.GPU{
		Name: d.Info.Name, UUID: d.Info.UUID, Driver: d.Info.Driver.String(), BytesToDevice: now.up - before.up, BytesFromDevice: now.down - before.down,
		BytesStraightToDevice: now.straightUp - before.straightUp, BytesStraightFromDevice: now.straightDown - before.straightDown,
		GDSFallbacks:   now.fallbacks - before.fallbacks,
		BytesByBackend: map[string]int64{}, ReadAgain: d.ways.Fallbacks(), BackendReasons: d.ways.Reasons(),
	}
	for _, w := range []zarrgpu.Way{zarrgpu.Host, zarrgpu.Bounce, zarrgpu.GDS, zarrgpu.NVComp} {
		if n := d.ways.Bytes(w); n > 0 {
			g.BytesByBackend[w.String()] = n
		}
	}
	for _, o := range d.tried.Outcomes() {
		t := runrecord.Trial{What: o.What, Array: o.Array, BytesPerSecond: map[string]float64{}, Chosen: o.Chosen}
		for _, w := range o.Ways {
			t.BytesPerSecond[w.Name] = w.Rate
		}
		g.Trials = append(g.Trials, t)
	}
	return g, d.Memory().Peak()
}

// Close gives the device back, and then the lease.
func (d *device) Close() error {
	return errors.Join(d.files.Close(), d.Device.Close(), d.lease.Release())
}
