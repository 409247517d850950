package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// print writes the record as Markdown.
func (r *record) print(w io.Writer) {
	fmt.Fprintf(w, "%s, driver for CUDA %s, commit %s\n\n", r.GPU.Name, r.Driver, r.Commit)
	if t := r.Start; t != nil {
		fmt.Fprintf(w, "start, ms: driver %.0f, context %.0f, kernels %.0f, first kernel %.0f; nvCOMP %.0f; the driver compiles a kernel in %.0f %s\n\n",
			t.Init*1e3, t.Context*1e3, t.MachineCode*1e3, t.FirstKernel*1e3, t.NVCOMP*1e3, t.Compile*1e3, t.Driver)
	}
	fmt.Fprintln(w, "| copy | bytes | streams | GB/s |\n|---|---:|---:|---:|")
	for _, c := range r.Copies {
		fmt.Fprintf(w, "| %s | %d | %d | %.1f |\n", map[bool]string{true: "up", false: "down"}[c.Up], c.Bytes, c.Streams, c.BytesPerSecond/1e9)
	}
	fmt.Fprintf(w, "\ncopy on the device: %.0f GB/s (read and written)\n\n", r.CopyBytesPerSecond/1e9)
	fmt.Fprintln(w, "| kernel | planes | GB/s | of a copy |\n|---|---:|---:|---:|")
	for _, k := range r.Kernels {
		fmt.Fprintf(w, "| %s | %d² | %.0f | %.2f |\n", k.Name, k.Side, k.BytesPerSecond/1e9, k.OfCopy)
	}
	fmt.Fprintf(w, "\nnvCOMP: %s\n", r.NVCOMP)
	if len(r.Chunks) > 0 {
		fmt.Fprintf(w, "\n| chunks | KiB | number | stored | decode, GB/s | %d threads | scratch, MiB | encode, GB/s | stored | same bytes |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n", hostThreads)
	}
	for _, c := range r.Chunks {
		fmt.Fprintf(w, "| %s | %d | %d | %.2f | %.2f | %.2f | %.0f | %.2f | %.2f | %v %s |\n", c.Codec, c.Size>>10, c.Count, c.Ratio, c.Decode/1e9, c.Host/1e9, float64(c.Scratch)/(1<<20), c.Encode/1e9, c.Own, c.Same, c.Error)
	}
	if len(r.Runs) > 0 {
		fmt.Fprintln(w, "\n| stage | codec | on | exit code | peak of the device, MiB | s |\n|---|---|---|---:|---:|---:|")
	}
	for _, t := range r.Runs {
		fmt.Fprintf(w, "| %s | %s | %s | %d | %d | %.2f |\n", t.Stage, t.Codec, t.Tag, t.RC, t.Device>>20, t.Seconds)
	}
	fmt.Fprintln(w, "\n| stage | GPU | CPU | same voxels |\n|---|---:|---:|---|")
	for _, s := range r.Stages {
		fmt.Fprintf(w, "| %s | %.2f s | %.2f s | %v |\n", s.Name, s.GPUSeconds, s.CPUSeconds, s.Same)
	}
	fmt.Fprintf(w, "\na stage on the GPU begins %.0f ms later than on the CPU\n", r.StartSeconds*1e3)
	switch p := &r.Peer; {
	case p.Skipped != "":
		fmt.Fprintf(w, "\nno peer: %s\n", p.Skipped)
	case p.Seconds != nil:
		fmt.Fprintf(w, "\n%v, %d MB of raw chunks, ours with all of start-up, theirs without\n\n| stage | theirs | ours |\n|---|---:|---:|\n", p.Versions, p.Bytes/1e6)
		for _, name := range slices.Sorted(maps.Keys(p.Seconds)) {
			fmt.Fprintf(w, "| %s | %.2f s | %.2f s |\n", name, p.Seconds[name], p.Ours[name])
		}
	}
}
