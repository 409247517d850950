package flags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/settings"
	"strata/pkg/units"
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
	Layout                       // --zarr_format --codec --checksum --chunks --shard
	Pyramid                      // --n_levels
	Inputs                       // --missing_chunks
	Pairs                        // --batch, in place of the arguments IN and OUT

	// Stage combines all groups but Pairs, for stages.
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

// CodecNames returns the names that --codec takes.
func CodecNames() []string {
	var names []string
	for _, c := range codecLevels {
		names = append(names, c.name)
	}
	return names
}

// codecUsage lists the codecs and their levels for the help.
func codecUsage() string {
	var names []string
	for _, c := range codecLevels {
		if c.high >= c.low {
			c.name += fmt.Sprintf(" (%d to %d)", c.low, c.high)
		}
		names = append(names, c.name)
	}
	return "compression of the output's chunks, with a level if wanted: " + strings.Join(names, ", ")
}

// checkCodec accepts NAME or NAME:LEVEL; "" is the input's or the default.
func checkCodec(v any) error {
	name, level, given := strings.Cut(v.(string), ":")
	i := slices.Index(CodecNames(), name)
	if i < 0 {
		if near := Nearest(name, CodecNames()); near != "" {
			return fmt.Errorf("is not a codec; did you mean %s?", near)
		}
		return fmt.Errorf("is not a codec: want one of %s", strings.Join(CodecNames(), ", "))
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

// Section is a part of the help, with a line below its flags.
type Section struct{ Title, Text string }

// Titles of the sections in which common flags stand.
const (
	inOut       = "Input and output options"
	resources   = "Resource options"
	gpus        = "GPU options"
	gpuFiles    = "GPU file options"
	remoteFiles = "Remote file options"
	general     = "General options"
)

// Sections returns the sections in which common flags stand, in order.
func Sections() []Section {
	const variables = "Environment variables set the same, such as %s. KvikIO's variables work, too."
	return []Section{
		{Title: inOut}, {Title: resources}, {Title: gpus},
		{gpuFiles, fmt.Sprintf(variables, "STRATA_COMPAT_MODE for --compat_mode")},
		{remoteFiles, fmt.Sprintf(variables, "STRATA_HTTP_TIMEOUT for --http_timeout")},
		{Title: general},
	}
}

// Common returns the flags of the chosen groups, then those that every command has.
func Common(s Shared) []Flag {
	var flags []Flag
	add := func(group Shared, section string, more ...Flag) {
		if s&group != group {
			return
		}
		for _, f := range more {
			f.Section = section
			flags = append(flags, f)
		}
	}
	add(GPU, gpus,
		Flag{Name: "use_gpu", Kind: Bool, Default: "true", Usage: "compute on a GPU if one is present and expected to be faster than the CPU"},
		Flag{Name: "require_gpu", Kind: Bool, Usage: "always compute on a GPU; exit with code 4 if none is usable"},
		Flag{Name: "gpu", Value: "ID", Note: "the one with most free memory", Usage: "index or UUID of the GPU to use, among those that CUDA_VISIBLE_DEVICES allows"},
		Flag{Name: "gpu_mem", Kind: Size, Note: "estimated", Check: Above(0), Usage: "GPU memory to reserve for this run; the other runs on the node share the rest"},
	)
	add(Resources, resources,
		Flag{Name: "threads", Short: "j", Kind: Int, Note: "all CPUs of the job", Check: Between(1, 4096), Usage: "number of worker threads, 1 to 4096"},
		Flag{Name: "mem", Kind: Size, Note: "half of the memory that the job may use, 512MiB or more", Check: AtLeast(1 << 20), Usage: "memory limit for buffers, at least 1MiB"},
		Flag{Name: "backend", Default: "auto", Choices: backends, Usage: "how to read chunks: through the page cache (host), past it (direct), memory-mapped (mmap), or into a GPU through host memory (bounce), by GPUDirect Storage (gds) or decoded there (nvcomp); auto chooses"},
	)
	add(Outputs, inOut,
		Flag{Name: "overwrite", Short: "f", Kind: Bool, Usage: "replace existing outputs, once the new ones are complete"},
		Flag{Name: "sync", Kind: Bool, Usage: "flush outputs to the storage device before they get their names, in case the power fails"},
	)
	add(Layout, inOut,
		Flag{Name: "zarr_format", Kind: Int, Value: "2|3", Note: "the input's", Check: Between(2, 3), Usage: "Zarr format of the output: 2 writes OME-Zarr 0.4, 3 writes OME-Zarr 0.5"},
		Flag{Name: "codec", Default: "blosc-zstd:1", Value: "NAME[:LEVEL]", Check: checkCodec, Usage: codecUsage()},
		Flag{Name: "checksum", Kind: Bool, Usage: "store a checksum with each chunk (codec crc32c), so that readers notice every damaged bit; needs Zarr format 3"},
		Flag{Name: "chunks", Kind: Ints, Value: "Z,Y,X", Note: "chosen by the program", Check: Between(1, MostAxis), Usage: "chunk shape of the output, in voxels"},
		Flag{Name: "shard", Kind: Ints, Value: "Z,Y,X", Note: "no shards", Check: Between(1, MostAxis), Usage: "shard shape of the output in voxels, a multiple of the chunk shape; needs Zarr format 3"},
	)
	add(Pyramid, inOut,
		Flag{Name: "n_levels", Kind: Int, Default: "5", Check: Between(0, 30), Usage: "number of pyramid levels below level 0, 0 to 30"},
	)
	add(Inputs, inOut,
		Flag{Name: "missing_chunks", Default: "warn", Choices: missingChunks, Usage: "how to treat chunks that are missing from an input: fill reads them as the fill value, warn does so too and reports chunks that were lost, error exits with code 3"},
	)
	add(Pairs, inOut,
		Flag{Name: BatchFlag, Value: "FILE", Usage: "process many pairs, one after another, with one start of the program and its GPU: lines IN TAB OUT of FILE, or of standard input (-), in place of the arguments. Flags that name a file to write contain {name}, the name of a pair's OUT without .ome.zarr, or {out}, its whole path without that"},
	)
	add(GPU, gpuFiles, gpuFileFlags()...)
	add(Resources, remoteFiles, httpFlags()...)
	add(0, general,
		Flag{Name: "progress", Default: "auto", Choices: []string{"auto", "bar", "plain", "none"}, Usage: "progress display: a bar, one line every 10 s (plain) or none; auto shows a bar on a terminal and plain lines elsewhere"},
		Flag{Name: "report", Value: "FILE", Written: true, Usage: "write a JSON record of the run: inputs, outputs, times, memory, warnings"},
		Flag{Name: "log_format", Default: "console", Choices: []string{"console", "json"}, Usage: "format of the log on standard error"},
		Flag{Name: "verbose", Short: "v", Kind: Bool, Usage: "log more detail, with times"},
		Flag{Name: "quiet", Short: "q", Kind: Bool, Usage: "log only errors and show no progress"},
		Flag{Name: "version", Kind: Bool, Usage: "print the version and exit"},
		Flag{Name: "help", Short: "h", Kind: Bool, Usage: "print all options and exit; -h prints a screen of help"},
		Flag{Name: "completion", Choices: shells, Value: "bash|zsh|fish", Usage: "print a completion script for this shell and exit"},
		Flag{Name: "man", Kind: Bool, Hidden: true, Usage: "print the manual page and exit"},
	)
	return flags
}

// LayoutOf returns flags for the layout of a further output, such as --aip_chunks for the prefix aip_. They are the
// flags of the groups [Layout] and [Pyramid] without --zarr_format and --checksum, which apply to all outputs of a run.
// axes names the axes of the output's chunks, and chunks describes their default.
func LayoutOf(prefix, output, axes, chunks string) (all []Flag) {
	for _, f := range Common(Layout | Pyramid) {
		switch f.Name {
		case "codec":
			f.Default, f.Note, f.Usage = "", "that of --codec", "compression of "+output+", as for --codec"
		case "chunks":
			f.Value, f.Note, f.Usage = axes, chunks, "chunk shape of "+output
		case "shard":
			f.Value, f.Usage = axes, "shard shape of "+output+", a multiple of its chunk shape; needs Zarr format 3"
		case "n_levels":
			f.Usage = "number of pyramid levels of " + output + " below level 0, 0 to 30"
		default:
			continue
		}
		f.Name, f.Section = prefix+f.Name, ""
		all = append(all, f)
	}
	return all
}

var (
	missingChunks = []string{"fill", "warn", "error"}

	backends = []string{"auto", "host", "direct", "mmap", "bounce", "gds", "nvcomp"}
	shells   = []string{"bash", "zsh", "fish"}
)

// gpuFileFlags are the flags of [settings.Settings].
func gpuFileFlags() []Flag {
	s := settings.Default()
	return []Flag{
		{Name: "compat_mode", Choices: []string{"auto", "on", "off"}, Note: s.Compat.String(), Usage: "how file data reach the GPU: on moves them through host memory, off only by GPUDirect Storage (an error where it does not work), auto by whichever works"},
		{Name: "gds_threads", Kind: Int, Note: "same as --threads", Check: Between(1, settings.MostThreads), Usage: "number of threads that move file data to and from the GPU"},
		{Name: "task_size", Kind: Size, Note: units.FormatSize(s.TaskSize), Check: Between(1, settings.MostBytes), Usage: "largest piece that one thread reads or writes at a time when it moves file data to or from the GPU"},
		{Name: "gds_threshold", Kind: Size, Note: units.FormatSize(s.Threshold), Check: Between(0, settings.MostBytes), Usage: "move reads and writes smaller than this through host memory, even where GPUDirect Storage works"},
		{Name: "bounce_buffer", Kind: Size, Note: units.FormatSize(s.Bounce), Check: Between(settings.LeastBounce, settings.MostBytes), Usage: "page-locked host memory per thread for file data that pass through the host on their way to or from the GPU"},
		{Name: "direct_io", Choices: []string{"none", "read", "write", "both"}, Note: "write", Usage: "bypass the page cache (O_DIRECT) when file data pass through the host on their way to (read) or from (write) the GPU"},
		{Name: "gds_register", Choices: []string{"auto", "off"}, Note: "auto", Usage: "keep GPU memory registered with cuFile from its second use on (auto), or never register it (off)"},
	}
}

// httpFlags are the flags of [settings.HTTP].
func httpFlags() []Flag {
	h := settings.DefaultHTTP()
	return []Flag{
		{Name: "http_status_codes", Kind: Ints, Value: "N,N", Note: "408, 429, 5xx", Check: Between(settings.LeastStatus, settings.MostStatus), Usage: "repeat a request after these HTTP status codes, and after no others"},
		{Name: "http_absent_codes", Kind: Ints, Value: "N,N", Note: "404, 410", Check: Between(settings.LeastStatus, settings.MostStatus), Usage: "take an object as absent after these HTTP status codes, and after no others; for public buckets without listing, which answer 403 for an absent object: 403,404"},
		{Name: "http_max_attempts", Kind: Int, Note: strconv.Itoa(h.Attempts), Check: Between(1, settings.MostAttempts), Usage: "number of times to send a request before the run fails"},
		{Name: "http_timeout", Kind: Duration, Note: units.FormatDuration(h.Timeout), Check: AtLeast(settings.LeastTimeout.Seconds()), Usage: "repeat a request when the server has sent nothing for this long"},
		{Name: "http_min_rate", Kind: Size, Note: units.FormatSize(h.MinRate), Usage: "repeat a request when the server sends fewer bytes per second than this, averaged over --http_timeout; 0 accepts any rate"},
	}
}
