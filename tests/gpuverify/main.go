// Command gpuverify measures kernels on the GPU that it finds, beside copies from
// device memory to device memory, and runs the stages there and on the CPU:
// scripts/gpu-verify.sh packs it for a machine that has a GPU and nothing else.
//
//	gpuverify -bin FOLDER -work FOLDER -json record.json [-mib 512] [-repeat 20]
//
// The record holds the machine, each kernel's bytes a second as the ratio to a copy,
// for each stage whether its output is the CPU's, voxel for voxel, and both times, how
// long a stage takes to begin, and what CuPy takes for the same work where Python has it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"strata/pkg/gpu"
)

// record is what one run found.
type record struct {
	Started time.Time `json:"started"`
	GPU     gpu.Info  `json:"gpu"`
	Driver  string    `json:"driver"` // newest CUDA that it knows
	Commit  string    `json:"commit"`

	CopyBytesPerSecond float64   `json:"copy_bytes_per_second"` // read and written
	OpenSeconds        float64   `json:"open_seconds"`          // driver, context, first kernel
	Kernels            []measure `json:"kernels"`
	NVCOMP             string    `json:"nvcomp"` // version, or why it cannot be used
	Chunks             []chunks  `json:"chunks"`
	Stages             []stage   `json:"stages"`
	StartSeconds       float64   `json:"start_seconds"` // of a stage on the GPU beyond one on the CPU
	Peer               peer      `json:"peer"`
}

// Set by the linker.
var commit = "unknown"

func main() {
	bin := flag.String("bin", "bin", "folder of the programs")
	work := flag.String("work", "", "folder for data (default: a temporary one)")
	out := flag.String("json", "gpu-verify.json", "record to write")
	mib := flag.Int("mib", 512, "size of what kernels work on, in MiB")
	repeat := flag.Int("repeat", 20, "how often each kernel runs; the median counts")
	tile := flag.String("tile", "100,256,256", "size of the phantom's tiles: Z,Y,X")
	peers := flag.String("peers", "", "script of the peer (default: none)")
	module := flag.String("module", "cupy", "array module of the peer")
	flag.Parse()
	if err := run(*bin, *work, *out, *tile, *peers, *module, int64(*mib)<<20, *repeat); err != nil {
		fmt.Fprintln(os.Stderr, "gpuverify:", err)
		os.Exit(1)
	}
}

func run(bin, work, out, tile, peers, module string, bytes int64, repeat int) error {
	r := &record{Started: time.Now().UTC(), Commit: commit}
	started := time.Now()
	list, err := gpu.Devices()
	if err != nil {
		return err
	}
	r.GPU, r.Driver = list[0], list[0].Driver.String()
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 6*bytes + 64<<20, Pinned: 64 << 20})
	if err != nil {
		return err
	}
	err = measureKernels(d, r, started, bytes, repeat)
	if err == nil {
		err = measureChunks(d, r, bytes, repeat)
	}
	if e := d.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if work == "" {
		if work, err = os.MkdirTemp("", "gpuverify-"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	if err := runStages(context.Background(), bin, work, tile, r); err != nil {
		return err
	}
	if err := measureStart(bin, work, max(3, repeat/2), r); err != nil {
		return err
	}
	if peers != "" {
		if err := runPeers(bin, work, peers, module, tile, r); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(text, '\n'), 0o666); err != nil {
		return err
	}
	r.print(os.Stdout)
	for _, c := range r.Chunks {
		if !c.Same {
			return fmt.Errorf("chunks of %s are not the host's: %s", c.Codec, c.Error)
		}
	}
	for _, s := range r.Stages {
		if !s.Same {
			return fmt.Errorf("%s: the voxels are not the CPU's", s.Name)
		}
	}
	return nil
}
