// Package zarrgpu reads regions of Zarr arrays into the memory of a GPU.
//
// A [Reader] reads an array to a device in two steps, so that the host can fetch a region while the device
// works on the previous one: [Slot.Fetch] reads files and blocks, [Slot.Into] queues the rest on a stream.
// Work queued later finds the region in device memory, in C order and native byte order.
//
//	r, err := zarrgpu.NewReader(array, device, zarrgpu.Options{})
//	slot, err := r.Fetch(ctx, region)
//	slot.Into(stream, dst)
//	stream.After(slot.Release)
//	err = stream.Wait()
//
// Each array uses the best [Way] that can serve it. Raw chunks go straight from their files into the device
// if cuFile moves them, and otherwise through page-locked memory. Compressed chunks go there in stored form,
// in one copy, and nvCOMP decodes them in one batch on the slot's own stream. The device assembles chunks
// that arrive whole. The host decodes all others: chunks that are not in C order, have the other byte order
// or filters, or need a missing library. If another way fails, the host reads the region again before Fetch
// returns, so that damaged data give the host's error.
package zarrgpu
