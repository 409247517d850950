// Package zarrgpu reads regions of Zarr arrays into the memory of a GPU.
//
// A [Reader] is an array and a device. Reading is in two steps, so that the host can
// fetch a region while the device works on the one before: [Slot.Fetch] reads files and
// blocks, [Slot.Into] queues what remains on a stream, and the region lies in device
// memory, in C order and native byte order, for what is queued behind it.
//
//	r, err := zarrgpu.NewReader(array, device, zarrgpu.Options{})
//	slot, err := r.Fetch(ctx, region)
//	slot.Into(stream, dst)
//	stream.After(slot.Release)
//	err = stream.Wait()
//
// Each array takes the best [Way] that can serve it: raw chunks go straight from their files
// into the device where cuFile moves them, else through page-locked memory; compressed chunks
// go there as they are stored, in one copy, and are decoded by nvCOMP in one batch, on a stream of the
// slot's own. Chunks that come whole are put together on the device. All others (not in C order, of the
// other byte order, with filters, or without the libraries) are decoded by the host. What fails on
// another way is read again by the host before Fetch returns: damaged data give the host's error.
package zarrgpu
