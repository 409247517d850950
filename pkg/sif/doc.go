// Package sif makes and reads container images of the Singularity image format,
// which Apptainer and Singularity run, without either and without root.
//
// An image is built from a definition file:
//
//	def, err := sif.ParseDefinition("x.def", file)
//	build := sif.Build{Definition: def, Out: "x.sif", Arch: "amd64", …}
//	err = build.Run(ctx)
//
// What a definition file may say is a part of what Apptainer reads: it begins
// with "Bootstrap: scratch", an empty root, or "Bootstrap: strata", the root
// that package recipe assembles, and goes on with %files, %environment,
// %labels, %runscript, %startscript, %test and %help. Nothing is run inside an
// image while it is built, so %post and its like are refused by name.
//
// The same inputs give the same bytes: times, owners and order are forced. The
// squashfs comes from mksquashfs; everything else is done here.
//
// [Open] reads an image: its descriptors, what it says of itself
// ([Image.Inspect]), its root ([Image.Root], [Image.Extract]) and its
// signatures ([Image.Verify]). [RunRoot] runs a command in an unpacked root
// where Apptainer is missing.
package sif
