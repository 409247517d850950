package settings

import (
	"strings"
	"testing"
)

func from(env map[string]string) (Settings, error) {
	return FromEnv(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

func TestFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		env  string
		want func(*Settings)
	}{
		"nothing":                        {"", func(*Settings) {}},
		"empty is nothing":               {"STRATA_TASK_SIZE= KVIKIO_TASK_SIZE=", func(*Settings) {}},
		"empty ours, KvikIO's":           {"STRATA_TASK_SIZE= KVIKIO_TASK_SIZE=8192", func(s *Settings) { s.TaskSize = 8192 }},
		"ours before KvikIO's":           {"STRATA_TASK_SIZE=1MiB KVIKIO_TASK_SIZE=8192", func(s *Settings) { s.TaskSize = 1 << 20 }},
		"on":                             {"STRATA_COMPAT_MODE=on", func(s *Settings) { s.Compat = On }},
		"True":                           {"KVIKIO_COMPAT_MODE=True", func(s *Settings) { s.Compat = On }},
		"NO":                             {"KVIKIO_COMPAT_MODE=NO", func(s *Settings) { s.Compat = Off }},
		"1":                              {"KVIKIO_COMPAT_MODE=1", func(s *Settings) { s.Compat = On }},
		"AUTO":                           {"KVIKIO_COMPAT_MODE=AUTO", func(*Settings) {}},
		"ours auto, KvikIO's on":         {"STRATA_COMPAT_MODE=auto KVIKIO_COMPAT_MODE=on", func(*Settings) {}},
		"threads":                        {"KVIKIO_NTHREADS=7", func(s *Settings) { s.Threads = 7 }},
		"threads by another name":        {"KVIKIO_NUM_THREADS=6", func(s *Settings) { s.Threads = 6 }},
		"threshold 0":                    {"STRATA_GDS_THRESHOLD=0", func(s *Settings) { s.Threshold = 0 }},
		"threshold":                      {"KVIKIO_GDS_THRESHOLD=1048576", func(s *Settings) { s.Threshold = 1 << 20 }},
		"bounce":                         {"KVIKIO_BOUNCE_BUFFER_SIZE=16384", func(s *Settings) { s.Bounce = 16384 }},
		"direct":                         {"STRATA_DIRECT_IO=read", func(s *Settings) { s.DirectRead, s.DirectWrite = true, false }},
		"KvikIO's direct reads":          {"KVIKIO_AUTO_DIRECT_IO_READ=on", func(s *Settings) { s.DirectRead = true }},
		"KvikIO's direct writes":         {"KVIKIO_AUTO_DIRECT_IO_WRITE=0", func(s *Settings) { s.DirectWrite = false }},
		"nothing is registered":          {"STRATA_GDS_REGISTER=off", func(s *Settings) { s.Register = false }},
		"ours direct, whatever KvikIO's": {"STRATA_DIRECT_IO=none KVIKIO_AUTO_DIRECT_IO_READ=1 KVIKIO_AUTO_DIRECT_IO_WRITE=1", func(s *Settings) { s.DirectWrite = false }},
	} {
		env := map[string]string{}
		for f := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(f, "=")
			env[k] = v
		}
		want := Default()
		c.want(&want)
		if got, err := from(env); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestFromEnvRefuses(t *testing.T) {
	for env, want := range map[string]string{
		"STRATA_COMPAT_MODE=maybe":             `environment variable STRATA_COMPAT_MODE: "maybe" is not auto, on or off`,
		"KVIKIO_COMPAT_MODE=2":                 `environment variable KVIKIO_COMPAT_MODE: "2" is not auto, on or off`,
		"STRATA_GDS_THREADS=0":                 `environment variable STRATA_GDS_THREADS: "0" is not a number of threads: want 1 to 1024`,
		"KVIKIO_NTHREADS=many":                 `environment variable KVIKIO_NTHREADS: "many" is not a number of threads: want 1 to 1024`,
		"STRATA_TASK_SIZE=0":                   `environment variable STRATA_TASK_SIZE: "0" must be from 1 B to 1 EiB`,
		"STRATA_TASK_SIZE=7EiB":                `environment variable STRATA_TASK_SIZE: "7EiB" must be from 1 B to 1 EiB`,
		"KVIKIO_TASK_SIZE=-1":                  `environment variable KVIKIO_TASK_SIZE: "-1" is not a size: want a number of bytes such as 1048576, 512MiB or 100MB`,
		"KVIKIO_GDS_THRESHOLD=1 furlong":       `environment variable KVIKIO_GDS_THRESHOLD: size "1 furlong" has the unknown unit "furlong": want KiB, MiB, GiB, TiB (1024) or KB, MB, GB, TB (1000)`,
		"STRATA_BOUNCE_BUFFER=4KiB":            `environment variable STRATA_BOUNCE_BUFFER: "4KiB" must be from 16 KiB to 1 EiB`,
		"STRATA_DIRECT_IO=yes":                 `environment variable STRATA_DIRECT_IO: "yes" is not none, read, write or both`,
		"STRATA_GDS_REGISTER=on":               `environment variable STRATA_GDS_REGISTER: "on" is not auto or off`,
		"KVIKIO_AUTO_DIRECT_IO_WRITE=whatever": `environment variable KVIKIO_AUTO_DIRECT_IO_WRITE: "whatever" is not on or off`,
	} {
		k, v, _ := strings.Cut(env, "=")
		if _, err := from(map[string]string{k: v}); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\n%s", env, err, want)
		}
	}
}

func FuzzFromEnv(f *testing.F) {
	for _, row := range variables {
		for _, v := range row {
			for _, text := range []string{"", "on", "AUTO", "0", "12", "4 MiB", "1e9", "99999999999999999999", "both", "\x00", "1.5K"} {
				f.Add(v.name, text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		s, err := from(map[string]string{name: text})
		if err != nil {
			if s != Default() || !strings.HasPrefix(err.Error(), "environment variable "+name+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v, %q", s, err)
			}
			return
		}
		if s.Threads < 0 || s.Threads > MostThreads || s.TaskSize < 1 || s.Threshold < 0 || s.Bounce < LeastBounce || s.Compat < Auto || s.Compat > Off {
			t.Errorf("%s=%q: %+v", name, text, s)
		}
	})
}
