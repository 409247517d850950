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
package zarrgpu
