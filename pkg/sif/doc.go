// Package sif makes and reads container images of the Singularity image format, which Apptainer and
// Singularity run. It needs neither of them, nor root.
//
// An image is built from a definition file:
//
//	def, err := sif.ParseDefinition("x.def", file)
//	build := sif.Build{Definition: def, Out: "x.sif", Arch: "amd64", …}
//	err = build.Run(ctx)
//
// It accepts a subset of Apptainer's definition files: they begin with "Bootstrap: scratch", an empty root,
// or "Bootstrap: strata", the root that package recipe assembles, and continue with %files, %environment,
// %labels, %runscript, %startscript, %test and %help. Nothing runs inside an image while it is built, so
// %post and similar sections are refused by name.
//
// The same inputs give the same bytes: times, owners and order are fixed. mksquashfs makes the squashfs;
// everything else is done here.
//
// [Open] reads an image: its descriptors, metadata ([Image.Inspect]), root ([Image.Root], [Image.Extract])
// and signatures ([Image.Verify]). [RunRoot] runs a command in an unpacked root where Apptainer is missing.
package sif
