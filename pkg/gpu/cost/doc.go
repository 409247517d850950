// Package cost estimates how long a stage takes on the host and on a GPU, before either is taken into use, and
// chooses the faster one.
//
// A run is a [Load] on the machine: bytes that storage and each direction of the bus move, seconds of processor
// cores, and what the device does. Storage, processors, bus and device work at the same time, so that a run takes as long as
// the busiest of them ([Load.Seconds]), after a start that the GPU needs and the host does not.
//
// [Choose] compares the host with the four ways of using a device: chunks are decoded by the host or by the
// device, and so encoded. What decides most often is how many streams nvCOMP has to decode beside each other: it
// decodes each at the speed of a few threads, so that a chunk that is one frame of Zstandard
// keeps a device busy for longer than a processor core.
//
//	c, err := cost.Choose(job, host, device)
//	log.Info().Msg(c.String())
//
// Package cli/stage asks before it opens a device, and has both ways of decoding and encoding tried on the first
// pieces of the work where a device is taken (package trial): the estimate of these is not needed for long.
//
// What stages, host and GPUs take is in tables (stages.tsv, host.tsv, figures.tsv), each figure with its source. All
// functions are pure.
package cost
