package cli

import (
	"strata/pkg/settings"
	"strata/pkg/units"
)

// gpuFiles is the section of the help for [gpuFileFlags].
const gpuFiles = "GPU file options"

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

// gpuFileSettings are the settings by the environment and, before it, the flags.
func gpuFileSettings(r *Run) (settings.Settings, error) {
	s, err := settings.Environment()
	if err != nil {
		return s, Usage("%w", err)
	}
	if r.IsSet("compat_mode") {
		err = s.SetMode(r.String("compat_mode"))
	}
	if err == nil && r.IsSet("direct_io") {
		err = s.SetDirect(r.String("direct_io"))
	}
	if err == nil && r.IsSet("gds_register") {
		err = s.SetRegister(r.String("gds_register"))
	}
	if r.IsSet("gds_threads") {
		s.Threads = r.Int("gds_threads")
	}
	if r.IsSet("task_size") {
		s.TaskSize = r.Size("task_size")
	}
	if r.IsSet("gds_threshold") {
		s.Threshold = r.Size("gds_threshold")
	}
	if r.IsSet("bounce_buffer") {
		s.Bounce = r.Size("bounce_buffer")
	}
	return s, err
}
