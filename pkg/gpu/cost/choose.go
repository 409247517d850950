package cost

import (
	"fmt"
	"math"
)

// Codec describes how chunks are stored, as far as it affects speed.
type Codec string

// Codecs. A Blosc chunk consists of many streams, one per block and split; chunks of the others are a single
// stream.
const (
	Raw     Codec = "raw"
	Zstd    Codec = "zstd"
	LZ4     Codec = "lz4"
	Deflate Codec = "deflate" // gzip, zlib
	Blosc   Codec = "blosc"   // of zstd
)

// family returns the codec for which a device has figures.
func (c Codec) family() Codec {
	if c == Blosc {
		return Zstd
	}
	return c
}

// Array is an input or an output.
type Array struct {
	Codec  Codec
	Bytes  int64 // decoded
	Stored int64 // as stored; 0: as decoded
	// Streams is the number of streams per nvCOMP call, for the chunks of one region of Region bytes.
	Streams int64
	Region  int64
	// Device reports whether the device can decode or encode the array at all.
	Device bool
}

func (a Array) stored() int64 {
	if a.Stored == 0 {
		return a.Bytes
	}
	return a.Stored
}

// packed estimates the fraction of an array's bytes that are encoded: Blosc stores splits of a block
// unencoded if encoding does not shrink them, as with the lower bytes of a number.
func (a Array) packed() float64 {
	if a.Codec != Blosc || a.Stored == 0 {
		return 1
	}
	return min(1, max(0, 2*(1-float64(a.Stored)/float64(max(a.Bytes, 1)))))
}

func (a Array) batches(times float64) Batches {
	region := max(a.Region, 1)
	bytes := int64(float64(a.Bytes) * times)
	regions := max((bytes+region-1)/region, 1)
	return Batches{a.Codec, int64(float64(bytes) * a.packed()), regions, regions * max(a.Streams, 1)}
}

// Job describes the work of a stage.
type Job struct {
	Stage string // name in stages.tsv
	In    Array
	Out   Array // Bytes 0: as many as the stage makes of its input
}

// Host is the machine around the GPU.
type Host struct {
	Cores   int     // of the cgroup
	Storage float64 // bytes per second; 0: the figure of host.tsv
	Figures Figures // nil: those of host.tsv; may hold measured figures instead
}

func (h Host) figures() Figures {
	if h.Figures == nil {
		return HostFigures()
	}
	return h.Figures
}

func (h Host) storage(f Figures) float64 {
	if h.Storage > 0 {
		return h.Storage
	}
	return f.get("storage")
}

// cores returns how many cores' work is done at once.
func (h Host) cores(f Figures) float64 {
	return 1 + float64(max(h.Cores, 1)-1)*f.get("scaling")
}

// Device is a GPU.
type Device struct {
	Model   string
	Figures Figures
	Workers int   // regions that are on the device at once
	Pinned  int64 // bytes of page-locked memory to be made
	Cubins  bool  // kernels are loaded, not compiled by the driver
	Started bool  // another job of the process uses it already
	Jobs    int   // of the process that share its start, with this one; 0 means 1
}

// Start returns the job's share of the seconds until a device works on a first region: for the driver, the context,
// the given number of kernels, and page-locked memory.
func (d Device) Start(kernels int) float64 {
	if d.Started {
		return 0
	}
	f := d.Figures
	load := f.get("jit")
	if d.Cubins {
		load = f.get("cubin")
	}
	return (f.get("init") + f.get("context") + float64(kernels)*load + float64(d.Pinned)/f.get("pin")) / float64(max(d.Jobs, 1))
}

// Plan is a way to do a job.
type Plan struct {
	GPU                          bool
	DeviceDecodes, DeviceEncodes bool
	Seconds                      float64
	Limit                        Limit
	Load                         Load // on the machine
}

// load estimates the work that a job gives to the machine in a given way. d is nil on the host.
func load(j Job, s Figures, h Figures, d *Device, p Plan) Load {
	out := j.Out
	if out.Bytes == 0 {
		out.Bytes = int64(float64(j.In.Bytes) * s.get("output"))
	}
	reads := s.get("host_reads")
	if p.GPU {
		reads = s.get("device_reads")
	}
	decoded, stored := float64(j.In.Bytes)*reads, float64(j.In.stored())*reads
	l := Load{
		Storage: int64(float64(j.In.stored())*s.get("device_reads")) + out.stored(), // what the host reads beyond that is in the page cache
		Host:    stored / h.get("read"),
	}
	if !p.DeviceDecodes && j.In.Codec != Raw {
		l.Host += decoded / h.get(string(j.In.Codec)+"_decode")
	}
	if !p.DeviceEncodes {
		l.Host += float64(out.Bytes) / h.get(string(out.Codec)+"_encode")
	}
	if !p.GPU {
		l.Host += float64(j.In.Bytes) / 1e9 * s.get("host_operators")
		return l
	}
	l.Start = d.Start(int(s.get("kernels")))
	l.Host += float64(j.In.Bytes) / 1e9 * s.get("beside")
	if j.In.Codec != Raw {
		l.Host += float64(j.In.Bytes) * s.get("beside_decodes") / h.get(string(j.In.Codec)+"_decode")
	}
	l.Traffic = int64(float64(j.In.Bytes) * s.get("device_traffic"))
	l.Up, l.Down = int64(decoded), out.Bytes
	if p.DeviceDecodes {
		l.Up = int64(stored)
		l.Decode = j.In.batches(reads)
	}
	if p.DeviceEncodes {
		l.Down = out.stored()
		l.Encode = out.batches(1)
	}
	return l
}

// Choice is the fastest plan, with the times of the others.
type Choice struct {
	Plan
	Host, Best Plan // on the host; the best on the device
	job        Job
	host       Host
	device     *Device
	start      float64 // seconds
}

// plans returns the ways to do a job, the first on the host, with their estimates.
func plans(j Job, s Figures, h Host, d *Device) []Plan {
	f := h.figures()
	all := []Plan{{}}
	if d != nil {
		for _, decodes := range []bool{false, true} {
			for _, encodes := range []bool{false, true} {
				if (decodes && !j.In.Device) || (encodes && (!j.Out.Device || s.get("encodes") == 0)) {
					continue
				}
				all = append(all, Plan{GPU: true, DeviceDecodes: decodes && j.In.Codec != Raw, DeviceEncodes: encodes && j.Out.Codec != Raw})
			}
		}
	}
	for i := range all {
		p := &all[i]
		var of *Device
		if p.GPU {
			of = d
		}
		p.Load = load(j, s, f, d, *p)
		p.Seconds, p.Limit = p.Load.Seconds(h, of)
	}
	return all
}

// Choose returns the fastest way to do a job; d is nil if there is no device.
func Choose(j Job, h Host, d *Device) (Choice, error) {
	s, err := stage(j.Stage)
	if err != nil {
		return Choice{}, err
	}
	ways := plans(j, s, h, d)
	c := Choice{Host: ways[0], Best: Plan{Seconds: math.Inf(1)}, job: j, host: h, device: d}
	if d != nil {
		c.start = d.Start(int(s.get("kernels")))
	}
	for _, p := range ways[1:] {
		if p.Seconds < c.Best.Seconds {
			c.Best = p
		}
	}
	c.Plan = c.Host
	if c.Best.Seconds < c.Host.Seconds*(1-h.figures().get("margin")) {
		c.Plan = c.Best
	}
	return c, nil
}

// Piece returns the seconds that one region of the input takes on an otherwise idle device, including the host's part.
func (c Choice) Piece() float64 {
	if c.device == nil {
		return 0
	}
	l, one := c.Best.Load, *c.device
	one.Workers = 1
	regions := float64(max(1, c.job.In.Bytes/max(c.job.In.Region, 1)))
	return (float64(l.Storage)/c.host.storage(c.host.figures()) + l.Host + float64(l.Up)/one.Figures.get("up") + l.Device(one) + float64(l.Down)/one.Figures.get("down")) / regions
}

// String returns the choice and the figures behind it on one line.
func (c Choice) String() string {
	cores := fmt.Sprintf("%d cores", c.host.Cores)
	if c.host.Cores <= 1 {
		cores = "1 core"
	}
	host := fmt.Sprintf("%.3g s on %s (limit: %s)", c.Host.Seconds, cores, c.Host.Limit)
	if c.device == nil {
		return "runs on the CPU: estimated " + host
	}
	device := fmt.Sprintf("%.3g s on %s (limit: %s; start %.2g s; %s; %s)", c.Best.Seconds, c.device.Model, c.Best.Limit, c.start,
		coded(c.job.In, "decoded", "input", c.Best.DeviceDecodes), coded(c.job.Out, "encoded", "output", c.Best.DeviceEncodes))
	if c.GPU {
		return "runs on the GPU: estimated " + device + ", beside " + host
	}
	return "runs on the CPU: estimated " + host + ", beside " + device
}

// coded selects the side that decodes an input or encodes an output.
func coded(a Array, how, what string, device bool) string {
	switch {
	case a.Codec == Raw:
		return "raw " + what
	case device:
		return fmt.Sprintf("%s %s by the GPU, %s, %d streams a region", what, how, a.Codec, max(a.Streams, 1))
	}
	return fmt.Sprintf("%s %s by the CPU, %s", what, how, a.Codec)
}
