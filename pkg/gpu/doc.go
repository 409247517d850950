// Package gpu drives NVIDIA GPUs through the CUDA driver API, without cgo and
// without an SDK: the driver's library is opened at run time, and where there is
// none, every call says so and the program goes on with the CPU.
//
// A [Device] is one GPU with its context. Its memory comes in [Buffer]s from a pool
// with a limit; page-locked host memory in buffers of package mem. Work is queued on
// a [Stream]: copies, kernels and waits run in their order, beside those of other
// streams. A stream remembers its first error, as a bufio.Writer does, and gives it
// from Wait, so that code reads as the chain of operators that it is.
//
//	s.Upload(in, host.B)
//	s.Launch(mean, grid, block, in, out, nz, n)
//	s.Download(host.B[:len], out)
//	err := s.Wait()
//
// The context is current on the threads of the device and of its streams, and on no
// other. With the build tag nocuda, and on systems that have no CUDA, the package
// compiles to one that has no device.
package gpu
