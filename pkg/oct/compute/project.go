package compute

import (
	"encoding/binary"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu/kernels"
	"strata/pkg/work"
)

// Projector is a worker that sums planes, with the same bits on every machine.
type Projector interface {
	Worker
	// AddPlanes adds n planes of the source's element type, each of the given number of pixels, to float64 sums in
	// increasing z. With begin, it overwrites the sums. Non-finite voxels are counted in the meter.
	AddPlanes(sums, planes Block, n, pixels int, begin bool)
	// Mean divides the sums by n and rounds once to float32.
	Mean(mean, sums Block, n, pixels int)
	// AnySum tells f whether any of the sums is non-zero.
	AnySum(sums Block, f func(some bool))
}

// addPlanes maps an element type to its filter.AddStrided.
var addPlanes = map[dtype.Type]func(sums []float64, planes []byte, n, stride int) int64{
	dtype.Uint8: addPlanesOf[uint8], dtype.Int8: addPlanesOf[int8], dtype.Uint16: addPlanesOf[uint16], dtype.Int16: addPlanesOf[int16],
	dtype.Uint32: addPlanesOf[uint32], dtype.Int32: addPlanesOf[int32], dtype.Uint64: addPlanesOf[uint64], dtype.Int64: addPlanesOf[int64],
	dtype.Float32: addPlanesOf[float32], dtype.Float64: addPlanesOf[float64],
}

func addPlanesOf[T dtype.Element](sums []float64, planes []byte, n, stride int) int64 {
	return filter.AddStrided(sums, dtype.Slice[T](planes), n, stride)
}

// addAtATime is the fewest voxels that are worth another processor: a tenth of a millisecond.
const addAtATime = 256 << 10

func (w *host) AddPlanes(sums, planes Block, n, pixels int, begin bool) {
	w.compute(func() {
		kind := w.plan.Source.mosaic.DType
		acc := dtype.Slice[float64](sums.host)[:pixels]
		// Each sum is one processor's, which adds to it in order. Planes are summed fastest in whole, so there are no
		// more parts than hands.
		parts := max(1, min(1+work.Idle(w.ctx), n*pixels/addAtATime))
		part := ((pixels+parts-1)/parts + 15) &^ 15 // of whole vectors
		w.err = work.Split(w.ctx, (pixels+part-1)/part, 0, func(i int) error {
			from, to := i*part, min((i+1)*part, pixels)
			if begin {
				clear(acc[from:to])
			}
			w.plan.nonFinite(addPlanes[kind](acc[from:to], planes.host[from*kind.Size():], n, pixels))
			return nil
		})
	})
}

func (w *host) Mean(mean, sums Block, n, pixels int) {
	w.compute(func() { filter.Mean(dtype.Slice[float32](mean.host)[:pixels], dtype.Slice[float64](sums.host), n) })
}

func (w *host) AnySum(sums Block, f func(bool)) {
	some := false
	for _, v := range dtype.Slice[float64](sums.host) {
		some = some || v != 0
	}
	f(some)
}

func (w *onDevice) AddPlanes(sums, planes Block, n, pixels int, begin bool) {
	w.try(func() error {
		return kernels.AddPlanes(w.dev.Stream, sums.device, planes.device, w.nonFinite(), w.plan.Source.mosaic.DType, n, int64(pixels), begin)
	})
}

func (w *onDevice) Mean(mean, sums Block, n, pixels int) {
	w.try(func() error { return kernels.Mean(w.dev.Stream, mean.device, sums.device, n, int64(pixels)) })
}

func (w *onDevice) AnySum(sums Block, f func(bool)) {
	w.try(func() error {
		w.dev.Stream.Zero(w.some)
		return kernels.CountSet(w.dev.Stream, w.some, sums.device)
	})
	w.Bring(Block{device: w.some}, func(b []byte) { f(binary.LittleEndian.Uint64(b) != 0) })
}
