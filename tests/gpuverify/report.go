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
	fmt.Fprintf(w, "copy on the device: %.0f GB/s (read and written); driver, context and first kernel: %.0f ms\n\n", r.CopyBytesPerSecond/1e9, r.OpenSeconds*1e3)
	fmt.Fprintln(w, "| kernel | GB/s | of a copy |\n|---|---:|---:|")
	for _, k := range r.Kernels {
		fmt.Fprintf(w, "| %s | %.0f | %.2f |\n", k.Name, k.BytesPerSecond/1e9, k.OfCopy)
	}
	fmt.Fprintf(w, "\nnvCOMP: %s\n", r.NVCOMP)
	if len(r.Chunks) > 0 {
		fmt.Fprintln(w, "\n| chunks of 1 MiB | stored | decode, GB/s | encode, GB/s | stored | same bytes |\n|---|---:|---:|---:|---:|---|")
	}
	for _, c := range r.Chunks {
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f | %.2f | %v %s |\n", c.Codec, c.Ratio, c.Decode/1e9, c.Encode/1e9, c.Own, c.Same, c.Error)
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
