// Package oct holds the code that the pipeline's stages share. Each stage is a package below it: a library call
// that reads OME-Zarr images and writes one, streaming in bounded memory with a given number of workers. The
// numbers depend neither on the workers and the memory nor on how the input is stored.
//
// A stage decides which tiles it needs (package tile), what to compute from them (package filter) and where the
// result goes (package ngff). Command lines, logs and atomic outputs belong to the binaries.
package oct
