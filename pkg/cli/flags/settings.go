package flags

import (
	"strconv"

	"strata/pkg/settings"
	"strata/pkg/units"
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
