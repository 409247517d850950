// Package gds reads files into a GPU's memory or the host's and writes them from there.
// docs/file-layer.md says how it compares with KvikIO, and what another program needs to use it.
//
//	p, err := gds.NewPool(device, settings.Default())
//	defer p.Close()
//	f, err := p.Open(path, os.O_RDONLY, 0)
//	defer f.Close()
//	err = f.Read(ctx, buffer.Span, 0)        // device memory
//	err = f.ReadAt(ctx, host, 1<<20)         // host memory
//	a, b := f.GoRead(ctx, x, 0), f.GoRead(ctx, y, 4096)
//	err = errors.Join(a.Wait(), b.Wait())
//	f.QueueRead(ctx, stream, buffer.Span, 0) // in the order of a stream
//
// What is read by parts, such as an object on a server, becomes a file by [Pool.OpenSource].
//
// A read or write is whole or an error. It is cut into tasks, which the threads of the
// pool work off, those of the read or write that came first before the others.
//
// Data goes one of two ways. Where cuFile moves it straight between file and device
// (GPUDirect Storage, [Pool.Mode]), and there is as much as the threshold, cuFile does it.
// Otherwise it comes through page-locked bounce buffers, of which a thread has two, so that
// one is read into while the other is copied to the device. What fails on the first way in
// the middle of a read is done again on the second, counted in [Stats], and warned of once.
//
// Host memory is read and written through the page cache, or, as the settings say, whole pages past it:
// memory at any address, by way of aligned buffers where it must be; what the page cache holds is read from there.
// Reads past it go through a queue of the system (io_uring) where it has one. [File.DirectIO] says why a
// file's pages do not go past the cache, and [Stats] how many bytes did.
//
// Four parts are for other programs, as KvikIO has them; no program of strata needs them: batches ([Begin]), reads and writes in
// the order of a stream ([File.QueueRead], [File.QueueWrite]), sources ([Pool.OpenSource]), and pending calls on host
// memory ([File.GoReadAt], [File.GoWriteAt]).
//
// Memory that is used again stays mapped for cuFile ([Pool.Register]).
package gds
