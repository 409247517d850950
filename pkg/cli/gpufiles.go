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
	flags := []Flag{
		{Name: "compat_mode", Choices: []string{"auto", "on", "off"}, Note: s.Compat.String(), Usage: "on: by way of the host; off: straight, by cuFile, or not at all"},
		{Name: "gds_threads", Kind: Int, Note: "as --threads", Check: Between(1, settings.MostThreads), Usage: "threads that read and write"},
		{Name: "task_size", Kind: Size, Note: units.FormatSize(s.TaskSize), Check: Between(1, settings.MostBytes), Usage: "what a thread takes at a time"},
		{Name: "gds_threshold", Kind: Size, Note: units.FormatSize(s.Threshold), Check: Between(0, settings.MostBytes), Usage: "what is smaller goes by way of the host"},
		{Name: "bounce_buffer", Kind: Size, Note: units.FormatSize(s.Bounce), Check: Between(settings.LeastBounce, settings.MostBytes), Usage: "page-locked memory of a thread for what goes by way of the host"},
		{Name: "direct_io", Choices: []string{"none", "read", "write", "both"}, Note: "write", Usage: "what the host does past the page cache (O_DIRECT)"},
		{Name: "gds_register", Choices: []string{"auto", "off"}, Note: "auto", Usage: "auto: the GPU's memory stays mapped for cuFile once it is used again"},
	}
	for i := range flags {
		flags[i].section = gpuFiles
	}
	return flags
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
