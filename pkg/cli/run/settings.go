package run

import "strata/pkg/settings"

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

// httpSettings are the settings by the environment and, before it, the flags.
func httpSettings(r *Run) (settings.HTTP, error) {
	h, err := settings.HTTPEnvironment()
	if err != nil {
		return h, Usage("%w", err)
	}
	if r.IsSet("http_status_codes") {
		h.Statuses = r.Ints("http_status_codes")
	}
	if r.IsSet("http_absent_codes") {
		h.Absent = r.Ints("http_absent_codes")
	}
	if r.IsSet("http_max_attempts") {
		h.Attempts = r.Int("http_max_attempts")
	}
	if r.IsSet("http_timeout") {
		h.Timeout = r.Duration("http_timeout")
	}
	if r.IsSet("http_min_rate") {
		h.MinRate = r.Size("http_min_rate")
	}
	return h, nil
}
