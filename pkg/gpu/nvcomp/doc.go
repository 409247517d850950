// Package nvcomp decodes and encodes compressed data on a GPU with NVIDIA's nvCOMP 5 or 6, whose library it
// opens at run time.
//
// Work comes in batches of [Piece]s, one call per batch and format, because one piece occupies only a small
// part of a device:
//
//	lib, err := nvcomp.Open(device)
//	err = lib.Decode(stream, nvcomp.Zstd, pieces)
//	err = stream.Wait() // names the first piece that could not be decoded
//
// nvCOMP checks that its output fits, and only part of its input: damaged data cause an error of the piece or
// a fault of the device (gpu.ErrLost). It does not verify the checksums of frames. A piece that decodes to an
// unexpected length is an error here.
package nvcomp
