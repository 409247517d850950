package cost

// Load is the work that a run gives to a machine.
type Load struct {
	Start   float64 // seconds before the first byte is computed on
	Storage int64   // bytes read and written
	Host    float64 // core-seconds
	Up      int64   // bytes to the device
	Down    int64   // bytes from it
	Traffic int64   // bytes that kernels move in the device's memory
	Kernels int64   // launches
	Decode  Batches // on the device
	Encode  Batches // on the device
}

// Batches describes the work of nvCOMP. Each of its calls processes the streams of one region.
type Batches struct {
	Codec   Codec
	Bytes   int64 // decoded
	Regions int64
	Streams int64 // of all regions
}

// Limit is the part of the machine that a run waits for.
type Limit string

// The parts of a machine.
const (
	ByStart   Limit = "start"
	ByStorage Limit = "storage"
	ByHost    Limit = "host"
	ByBus     Limit = "PCIe"
	ByDevice  Limit = "device"
)

// seconds returns the time that the device needs with a number of workers that each have one region there. The time for
// one stream does not depend on other streams, so that only further workers use the rest of the device.
func (b Batches) seconds(f Figures, way string, workers int) float64 {
	if b.Bytes == 0 || b.Streams == 0 {
		return 0
	}
	name := string(b.Codec.family()) + "_" + way
	each := float64(b.Bytes) / float64(b.Streams) / f.get(name+"_stream") * float64(max(b.Regions, 1))
	return max(each/float64(max(workers, 1)), float64(b.Bytes)/f.get(name))
}

// Device returns the computing time of the device: kernels, decoding, encoding.
func (l Load) Device(d Device) float64 {
	f := d.Figures
	kernels := float64(l.Traffic)/(f.get("memory")*f.get("memory_share")) + float64(l.Kernels)*f.get("kernel")
	return kernels + l.Decode.seconds(f, "decode", d.Workers) + l.Encode.seconds(f, "encode", d.Workers)
}

// Seconds returns the duration of the run and its bottleneck. d is nil for a run on the host.
func (l Load) Seconds(h Host, d *Device) (float64, Limit) {
	f := h.figures()
	busy := map[Limit]float64{
		ByStorage: float64(l.Storage) / h.storage(f),
		ByHost:    l.Host / h.cores(f),
	}
	if d != nil {
		busy[ByBus] = max(float64(l.Up)/d.Figures.get("up"), float64(l.Down)/d.Figures.get("down"))
		busy[ByDevice] = l.Device(*d)
	}
	longest, limit := 0.0, ByStorage
	for _, part := range []Limit{ByStorage, ByHost, ByBus, ByDevice} {
		if busy[part] > longest {
			longest, limit = busy[part], part
		}
	}
	if l.Start > longest {
		limit = ByStart
	}
	return l.Start + longest, limit
}
