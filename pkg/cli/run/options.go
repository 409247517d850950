package run

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"

	"strata/pkg/cli/flags"
	"strata/pkg/dtype"
	"strata/pkg/host"
	"strata/pkg/mem"
	"strata/pkg/settings"
	"strata/pkg/units"
	"strata/pkg/zarr/codec"
)

// Options are the values of the common flags. Those of groups that a command
// does not have keep their defaults.
type Options struct {
	UseGPU     bool              // a GPU is wanted, and not known to be unusable
	RequireGPU bool              // --require_gpu
	GPU        string            // index or UUID; "": best free
	GPUMem     int64             // bytes to lease; 0: estimate
	GPUFiles   settings.Settings // how files are moved to and from the GPU
	HTTP       settings.HTTP     // how requests to servers are tried again
	Threads    int               // workers, at least 1
	Requests   int               // on their way at a time, to inputs that are far away; 0: all are near
	Mem        int64             // ceiling for buffers, bytes
	SharedMem  bool              // it is the default, which other programs may have, too: see oct.Resources
	Reserved   int64             // of them, for what reading the inputs takes besides
	Backend    string            // as the flag has it, one that the command can have
	Overwrite  bool
	// MissingChunks selects how chunks of inputs that are not stored are handled: "fill", "warn" or "error".
	MissingChunks string
	Sync          bool
	ZarrFormat    int    // 2 or 3; 0: the input's
	Codec         string // NAME[:LEVEL], checked; with --checksum, codec.ChecksumSuffix follows
	Checksum      bool
	Chunks        []int  // nil: the stage's own
	Shard         []int  // nil: none
	Levels        int    // pyramid levels below level 0
	Progress      string // "auto", "bar", "plain" or "none"
	Report        string // file, or ""
	LogJSON       bool
	Verbose       bool
	Quiet         bool
}

// options gathers the common flags of a parsed command line.
func options(r *Run) (Options, error) {
	o := Options{GPUFiles: settings.Default(), HTTP: settings.DefaultHTTP(), Threads: runtime.GOMAXPROCS(0), Backend: "auto", Codec: "blosc-zstd:1", MissingChunks: "warn"}
	s := r.Command.Shared
	if s&flags.GPU != 0 {
		o.UseGPU, o.RequireGPU, o.GPU, o.GPUMem = r.Bool("use_gpu"), r.Bool("require_gpu"), r.String("gpu"), r.Size("gpu_mem")
		if o.RequireGPU && !o.UseGPU {
			return o, Usage("--require_gpu contradicts --no-use_gpu: give one of them")
		}
		var err error
		if o.GPUFiles, err = gpuFileSettings(r); err != nil && o.UseGPU {
			return o, err
		}
	}
	if s&flags.Resources != 0 {
		var err error
		if o.HTTP, err = httpSettings(r); err != nil {
			return o, err
		}
		o.Backend = r.String("backend")
		if r.IsSet("threads") {
			o.Threads = r.Int("threads")
		}
		o.Mem = r.Size("mem")
	}
	if limits, what := memoryLimits(); o.Mem == 0 {
		o.Mem, o.SharedMem = memBudget(limits, host.Available()), true
	} else if !r.IsSet("mem") { // the command's own default
		o.Mem = min(o.Mem, memBudget(limits, host.Available()))
	} else if most := memCeiling(limits); o.Mem > most {
		r.early = append(r.early, fmt.Sprintf("--mem %s is more than this job has: %s %s, buffers get %s",
			units.FormatSize(o.Mem), what, units.FormatSize(*limits.Memory), units.FormatSize(most)))
		o.Mem = most
	}
	if s&flags.Outputs != 0 {
		o.Overwrite, o.Sync = r.Bool("overwrite"), r.Bool("sync")
	}
	if s&flags.Inputs != 0 {
		o.MissingChunks = r.String("missing_chunks")
	}
	if s&flags.Layout != 0 {
		o.ZarrFormat, o.Codec, o.Chunks, o.Shard = r.Int("zarr_format"), r.String("codec"), r.Ints("chunks"), r.Ints("shard")
		if o.Shard != nil && o.ZarrFormat == 2 {
			return o, Usage("--shard needs Zarr format 3: give --zarr_format 3 or leave --shard out")
		}
		if o.Checksum = r.Bool("checksum"); o.Checksum {
			o.Codec += codec.ChecksumSuffix
			if _, err := codec.FromFlag(o.Codec, dtype.Uint8, o.ZarrFormat); err != nil {
				return o, Usage("%w", err)
			}
		}
		for name, shape := range map[string][]int{"chunks": o.Chunks, "shard": o.Shard} {
			if err := countable(name, shape); err != nil {
				return o, err
			}
		}
		if err := multiple(o.Shard, o.Chunks); err != nil {
			return o, err
		}
	}
	if s&flags.Pyramid != 0 {
		o.Levels = r.Int("n_levels")
	}
	o.Progress, o.Report = r.String("progress"), r.String("report")
	o.LogJSON, o.Verbose, o.Quiet = r.String("log_format") == "json", r.Bool("verbose"), r.Bool("quiet")
	if o.Verbose && o.Quiet {
		return o, Usage("--verbose contradicts --quiet: give one of them")
	}
	return o, nil
}

// countable refuses shapes of more voxels than any chunk or shard can have.
func countable(name string, shape []int) error {
	voxels := 1
	for _, n := range shape {
		if n > flags.MostAxis/voxels {
			return Usage("--%s %s has too many voxels: at most %d", name, join(shape), int64(flags.MostAxis))
		}
		voxels *= n
	}
	return nil
}

// multiple checks --shard against --chunks where both are given.
func multiple(shard, chunks []int) error {
	if shard == nil || chunks == nil {
		return nil
	}
	if len(shard) != len(chunks) {
		return Usage("--shard has %d axes, --chunks has %d: give the same number", len(shard), len(chunks))
	}
	for i := range shard {
		if shard[i]%chunks[i] != 0 {
			return Usage("--shard %s is not a multiple of --chunks %s on axis %d", join(shard), join(chunks), i)
		}
	}
	return nil
}

func join(n []int) string {
	text := ""
	for i, v := range n {
		if i > 0 {
			text += ","
		}
		text += strconv.Itoa(v)
	}
	return text
}

// memBudget returns the default of --mem in bytes: half of the memory that the job may use. That is the limit of its
// control group or address space, or the available memory if that is known (not 0) and less. The default is at least
// 512 MiB, or half of the limit if that is less.
func memBudget(l host.Limits, available int64) int64 {
	least, usable := int64(mem.Assured), available
	if l.Memory != nil {
		least = min(least, *l.Memory/2)
		if usable == 0 || *l.Memory < usable {
			usable = *l.Memory
		}
	}
	return max(least, usable/2)
}

// AssuredMem returns the part of Mem that does not depend on the machine or on other programs: all of Mem if the user
// set it, otherwise no more than [mem.Assured].
func (o *Options) AssuredMem() int64 {
	if o.SharedMem {
		return min(o.Mem, mem.Assured)
	}
	return o.Mem
}

// memCeiling returns the maximum of --mem: seven eighths of the control group's limit. The rest is for the program
// itself, because the system kills a process that exceeds the limit.
func memCeiling(l host.Limits) int64 {
	if l.Memory == nil {
		return math.MaxInt64
	}
	return *l.Memory - *l.Memory/8
}

// backendReason says why a command cannot have the backend that was asked for; "" if it
// can, as far as that is known before it has opened its input and a GPU.
func (r *Run) backendReason() string {
	o := &r.Options
	switch {
	case o.Backend == "auto" || o.Backend == "host":
		return ""
	case o.Backend == "direct" && runtime.GOOS != "linux":
		return "this system has no O_DIRECT"
	case !onGPU(o.Backend):
		return "" // the input's file system may have a word to say
	case r.accelerator == nil:
		return errNoBackEnd.Error()
	case !o.UseGPU:
		return "it needs a GPU, and --no-use_gpu is given"
	}
	return ""
}

// onGPU reports whether a backend needs a GPU.
func onGPU(backend string) bool {
	return backend == "bounce" || backend == "gds" || backend == "nvcomp"
}

// errNoBackEnd says why a command without code for a GPU uses none.
var errNoBackEnd = NoDriver(errors.New("this build has no GPU back end"))
