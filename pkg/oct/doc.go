// Package oct holds what the stages of the pipeline share. The stages are packages below it, library calls: each reads
// OME-Zarr images and writes one, streaming, in bounded memory, with as many
// workers as it is given. The numbers do not depend on the workers, the memory
// or the way the input is stored.
//
// A stage says which tiles it needs (package tile), what to do with them
// (package filter) and where the result goes (package ngff). Command lines, logs
// and atomic outputs are the business of the binaries.
package oct
