// Package nvcomp decodes and encodes compressed data on a GPU with NVIDIA's nvCOMP 5
// or 6, whose library is opened at run time.
//
// Work comes in batches of [Piece]s, one call a batch and format, because one piece
// occupies a small part of a device:
//
//	lib, err := nvcomp.Open(device)
//	err = lib.Decode(stream, nvcomp.Zstd, pieces)
//	err = stream.Wait() // names the first piece that could not be decoded
//
// nvCOMP checks that what it writes fits, and some of what it reads: of damaged data it
// promises nothing but an error of the piece, or a fault of the device (gpu.ErrLost).
// Checksums of frames are not verified. A piece that decodes to another length than was
// expected is an error here.
package nvcomp
