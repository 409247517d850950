// Package filelayer reads files into the memory of a GPU or of the host and writes them from there.
// docs/file-layer.md compares it with KvikIO and says what another program needs to use it.
//
//	p, err := filelayer.NewPool(device, settings.Default())
//	defer p.Close()
//	f, err := p.Open(path, os.O_RDONLY, 0)
//	defer f.Close()
//	err = f.Read(ctx, buffer.Span, 0)        // device memory
//	err = f.ReadAt(ctx, host, 1<<20)         // host memory
//	a, b := f.GoRead(ctx, x, 0), f.GoRead(ctx, y, 4096)
//	err = errors.Join(a.Wait(), b.Wait())
//	f.QueueRead(ctx, stream, buffer.Span, 0) // in the order of a stream
//
// [Pool.OpenSource] makes a file of anything that can be read in parts, such as an object on a server.
//
// A read or write completes or returns an error. It is cut into tasks, which the threads of the pool process
// in the order of the calls.
//
// Data takes one of two ways. If cuFile moves it straight between file and device (GPUDirect Storage,
// [Pool.Mode]) and there is at least the threshold of it, cuFile is used. Otherwise it passes through
// page-locked bounce buffers, two per thread, so that one is filled while the other is copied to the device.
// A piece that fails on the first way is repeated on the second, counted in [Stats], and warned of once.
//
// Host memory is read and written through the page cache, or, if the settings say so, past it in whole pages.
// The memory may have any address; unaligned memory goes through aligned buffers. Pages that the cache holds
// are read from there. Reads past the cache use io_uring if the system has it. [File.DirectIO] returns why a
// file's pages do not bypass the cache, and [Stats] how many bytes did.
//
// Four parts exist for other programs, as in KvikIO, and are not used by strata: batches ([Begin]), reads and
// writes in the order of a stream ([File.QueueRead], [File.QueueWrite]), sources ([Pool.OpenSource]), and
// pending calls on host memory ([File.GoReadAt], [File.GoWriteAt]).
//
// Memory that is used repeatedly stays mapped for cuFile ([Pool.Register]).
package filelayer
