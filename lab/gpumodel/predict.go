package main

import (
	"strings"

	"strata/pkg/gpu/cost"
)

// Predicted inputs: tiles of 200×256×256 float32, each a chunk.
var (
	sizes = []int64{1e9, 20e9}
	cores = []int{4, 16, 32}
)

const (
	region    = 200 * 256 * 256 * 4
	tolerated = 1.1 // times the better machine
)

// cell is the prediction for a machine with a number of cores.
type cell struct {
	host, gpu            float64 // seconds; of the best way of using the GPU
	hostLimit, gpuLimit  cost.Limit
	deviceDecodes, codes bool // of that way
	chosen               cost.Plan
	worse                float64 // what was chosen, over the better
}

// row is an input for a stage on a GPU.
type row struct {
	gpu   string
	size  int64
	of    measured
	cells []cell
}

// predict computes all rows.
func predict(all []measured) ([]row, error) {
	var out []row
	for _, model := range cost.Models() {
		for _, size := range sizes {
			for _, m := range all {
				r := row{gpu: model.Name, size: size, of: m}
				for _, n := range cores {
					c, err := m.compare(size, cost.Host{Cores: n}, device(model.Name))
					if err != nil {
						return nil, err
					}
					r.cells = append(r.cells, c)
				}
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// device returns a GPU of a model, as a stage with four workers sees it.
func device(model string) *cost.Device {
	_, figures := cost.ForGPU(model, 0)
	return &cost.Device{Model: model, Figures: figures, Workers: 4, Pinned: 4 * 6 * region, Cubins: true}
}

// compare returns the times of the machines, from the measurements, and the one that the model chooses from its
// tables.
func (m measured) compare(size int64, h cost.Host, d *cost.Device) (cell, error) {
	hostLoad := cost.Load{Storage: m.storage(size), Host: m.Host * float64(size) / 1e9}
	var c cell
	c.host, c.hostLimit = hostLoad.Seconds(h, nil)
	choice, err := cost.Choose(m.job(size), h, d)
	if err != nil {
		return c, err
	}
	c.chosen = choice.Plan
	took := c.host
	for _, decodes := range []bool{false, true} {
		for _, encodes := range []bool{false, true} {
			if decodes && m.Codec == cost.Raw {
				continue
			}
			s, limit := m.load(size, decodes, encodes, *d).Seconds(h, d)
			if c.gpu == 0 || s < c.gpu {
				c.gpu, c.gpuLimit, c.deviceDecodes, c.codes = s, limit, decodes, encodes
			}
			if p := choice.Plan; p.GPU && p.DeviceDecodes == decodes && p.DeviceEncodes == encodes {
				took = s
			}
		}
	}
	c.worse = took / min(c.host, c.gpu)
	return c, nil
}

func (m measured) storage(size int64) int64 {
	return int64(float64(size) * (m.Reads*m.Stored + m.Written))
}

// load scales the work counted on the double to an input of the given size.
func (m measured) load(size int64, decodes, encodes bool, d cost.Device) cost.Load {
	n := float64(size)
	h := cost.HostFigures()
	l := cost.Load{
		Start: d.Start(m.Kernels), Storage: m.storage(size), Host: m.Beside * n / 1e9,
		Up: int64(m.Up * n), Down: int64(m.Down * n), Traffic: int64(m.Traffic * n),
		Kernels: int64(m.Launches * n / region), // as many a tile, however large it is
	}
	if m.Codec != cost.Raw {
		if decodes {
			l.Decode = batches(m.Codec, m.Decoded, m.DecodeStreams, m.Reads, size)
		} else {
			l.Host += m.Reads * n / h[string(m.Codec)+"_decode"]
			l.Up = int64(m.Reads * n)
		}
	}
	if encodes {
		l.Encode = batches(cost.Blosc, m.Encoded, m.EncodeStreams, 1, size)
	} else {
		l.Host += m.Encoded * n / h["blosc_encode"]
		l.Down = int64(max(m.Down, m.Encoded) * n)
	}
	return l
}

// batches returns the work of nvCOMP for regions that are decoded the given number of times. Blosc has as many
// streams as there are blocks in the data; other codecs have one for each chunk, which is a tile.
func batches(codec cost.Codec, bytes, streams, times float64, size int64) cost.Batches {
	n := float64(size)
	b := cost.Batches{Codec: codec, Bytes: int64(bytes * n), Regions: max(int64(n*times/region), 1), Streams: int64(streams * n)}
	if codec == cost.Zstd {
		b.Streams = b.Regions
	}
	b.Streams = max(b.Streams, 1)
	return b
}

// job returns what the program knows about this work before it begins.
func (m measured) job(size int64) cost.Job {
	in := cost.Array{Codec: m.Codec, Bytes: size, Stored: int64(float64(size) * m.Stored), Streams: 1, Region: region, Device: true}
	if in.Codec == cost.Blosc {
		in.Streams = 400
	}
	out := cost.Array{Codec: cost.Blosc, Streams: 400, Region: region, Device: true}
	for _, s := range stages {
		if s.name == m.Stage {
			out.Bytes = int64(s.share * float64(size))
		}
	}
	return cost.Job{Stage: m.Stage, In: in, Out: out}
}

// how describes which side decodes and encodes.
func how(codec cost.Codec, decodes, encodes bool) string {
	var by []string
	if decodes && codec != cost.Raw {
		by = append(by, "d")
	}
	if encodes {
		by = append(by, "e")
	}
	return strings.Join(by, "")
}
