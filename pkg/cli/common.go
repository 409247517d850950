package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shared is a set of groups of common flags. Every command has --verbose,
// --quiet, --log_format, --progress, --report, --version, --help and
// --completion without asking.
type Shared uint

// The groups of common flags.
const (
	GPU       Shared = 1 << iota // --use_gpu --require_gpu --gpu --gpu_mem, and how files are moved to and from it
	Resources                    // --threads --mem --backend, and how requests to servers are tried again
	Outputs                      // --overwrite --sync
	Layout                       // --zarr_format --codec --chunks --shard
	Pyramid                      // --n_levels
	Inputs                       // --missing_chunks

	// Stage is what every stage has: all groups.
	Stage = GPU | Resources | Outputs | Layout | Pyramid | Inputs
)

// MostAxis is the largest length of an axis that flags may give.
const MostAxis = 1 << 40

// codecLevels are the codecs of --codec with the levels they take.
var codecLevels = []struct {
	name      string
	low, high int
}{
	{"raw", 0, -1}, {"zstd", -7, 22}, {"lz4", 1, 65537}, {"gzip", 0, 9},
	{"blosc-lz4", 0, 9}, {"blosc-zstd", 0, 9},
}

func codecNames() []string {
	var names []string
	for _, c := range codecLevels {
		names = append(names, c.name)
	}
	return names
}

// checkCodec accepts NAME or NAME:LEVEL; "" is the input's or the default.
func checkCodec(v any) error {
	name, level, given := strings.Cut(v.(string), ":")
	i := slices.Index(codecNames(), name)
	if i < 0 {
		if near := nearest(name, codecNames()); near != "" {
			return fmt.Errorf("is not a codec; did you mean %s?", near)
		}
		return fmt.Errorf("is not a codec: want one of %s", strings.Join(codecNames(), ", "))
	}
	if !given {
		return nil
	}
	c := codecLevels[i]
	n, err := strconv.Atoi(level)
	switch {
	case c.high < c.low:
		return fmt.Errorf("has a level, but %s takes none", name)
	case err != nil || n < c.low || n > c.high:
		return fmt.Errorf("has the level %q: %s takes %d to %d", level, name, c.low, c.high)
	}
	return nil
}

// commonFlags are the flags of the chosen groups, then those that every command has.
func commonFlags(s Shared) []Flag {
	var flags []Flag
	add := func(group Shared, more ...Flag) {
		if s&group == group {
			flags = append(flags, more...)
		}
	}
	add(GPU,
		Flag{Name: "use_gpu", Kind: Bool, Default: "true", Usage: "use a GPU where there is one and it is expected to be faster than the CPU"},
		Flag{Name: "require_gpu", Kind: Bool, Usage: "always use a GPU; fail (exit 4) where none is usable"},
		Flag{Name: "gpu", Value: "ID", Note: "best free", Usage: "index or UUID of the GPU; CUDA_VISIBLE_DEVICES is honoured"},
		Flag{Name: "gpu_mem", Kind: Size, Note: "estimated", Check: Above(0), Usage: "device memory to ask the node's lease for"},
	)
	add(Resources,
		Flag{Name: "threads", Short: "j", Kind: Int, Note: "CPUs of the cgroup", Check: Between(1, 4096), Usage: "workers"},
		Flag{Name: "mem", Kind: Size, Note: "512MiB, or half the cgroup's limit if less", Check: AtLeast(1 << 20), Usage: "ceiling for buffers"},
		Flag{Name: "backend", Default: "auto", Choices: backends, Usage: "how chunks are read"},
	)
	add(Outputs,
		Flag{Name: "overwrite", Short: "f", Kind: Bool, Usage: "replace an existing output, once the new one is complete"},
		Flag{Name: "sync", Kind: Bool, Usage: "flush outputs to the device before they are put in place"},
	)
	add(Layout,
		Flag{Name: "zarr_format", Kind: Int, Value: "2|3", Note: "the input's", Check: Between(2, 3), Usage: "2 writes NGFF 0.4, 3 writes NGFF 0.5"},
		Flag{Name: "codec", Default: "blosc-zstd:1", Value: "NAME[:LEVEL]", Check: checkCodec, Usage: strings.Join(codecNames(), ", ")},
		Flag{Name: "chunks", Kind: Ints, Value: "Z,Y,X", Note: "per stage", Check: Between(1, MostAxis), Usage: "chunk shape in voxels"},
		Flag{Name: "shard", Kind: Ints, Value: "Z,Y,X", Note: "none", Check: Between(1, MostAxis), Usage: "shard shape in voxels, a multiple of the chunks; Zarr format 3"},
	)
	add(Pyramid,
		Flag{Name: "n_levels", Kind: Int, Default: "5", Check: Between(0, 30), Usage: "pyramid levels below level 0"},
	)
	add(Inputs,
		Flag{Name: "missing_chunks", Default: "warn", Choices: missingChunks, Usage: "fill takes chunks that are not stored as the fill value; warn says so where they got lost; error fails (exit 3)"},
	)
	add(GPU, gpuFileFlags()...)
	add(Resources, httpFlags()...)
	add(0,
		Flag{Name: "progress", Default: "auto", Choices: []string{"auto", "bar", "plain", "none"}, Usage: "bar on a terminal, a line every 10 s elsewhere"},
		Flag{Name: "report", Value: "FILE", Usage: "write a JSON record of the run"},
		Flag{Name: "log_format", Default: "console", Choices: []string{"console", "json"}, Usage: "form of the log on standard error"},
		Flag{Name: "verbose", Short: "v", Kind: Bool, Usage: "log more, with times"},
		Flag{Name: "quiet", Short: "q", Kind: Bool, Usage: "log errors only, no progress"},
		Flag{Name: "version", Kind: Bool, Usage: "print the version"},
		Flag{Name: "help", Short: "h", Kind: Bool, Usage: "print this help"},
		Flag{Name: "completion", Choices: shells, Value: "bash|zsh|fish", Usage: "print a completion script for a shell"},
		Flag{Name: "man", Kind: Bool, Hidden: true, Usage: "print the page of the manual"},
	)
	return flags
}

var (
	missingChunks = []string{"fill", "warn", "error"}

	backends = []string{"auto", "host", "direct", "mmap", "bounce", "gds", "nvcomp"}
	shells   = []string{"bash", "zsh", "fish"}
)
