// Package cost estimates how long a stage takes on the host and on a GPU, before either is initialised, and
// chooses the faster one.
//
// A run is a [Load] on the machine: bytes moved by storage and by each direction of the bus, seconds of
// processor cores, and the device's work. Storage, processors, bus and device work concurrently, so that a
// run takes as long as the busiest of them ([Load.Seconds]), after a start-up that only the GPU needs.
//
// [Choose] compares the host with the four ways of using a device: host or device decodes, and host or device
// encodes. The number of streams that nvCOMP can decode at once often decides: it decodes each at the speed
// of a few threads, so that a chunk that is one Zstandard frame occupies a device for longer than a processor
// core.
//
//	c, err := cost.Choose(job, host, device)
//	log.Info().Msg(c.String())
//
// Package cli/stage asks before it opens a device. If it takes the device, both ways of decoding and encoding
// are tried on the first pieces of the work (package trial), so that the estimates for these matter only
// briefly.
//
// The figures of stages, host and GPUs are in tables (stages.tsv, host.tsv, figures.tsv), each with its
// source. All functions are pure.
package cost
