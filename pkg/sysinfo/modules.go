package sysinfo

import "strings"

// Module describes a relevant kernel module.
type Module struct {
	Loaded  bool   `json:"loaded"`
	Version string `json:"version"` // "" if it has none
	File    string `json:"file"`    // where it lies for this kernel; "" if it does not
	Reason  string `json:"reason"`  // why it is not known whether it is loaded
}

// module finds a module by its name with underscores, and its file, whose name may have hyphens.
func (r Root) module(name string, release Fact[string]) Module {
	var m Module
	dir := "/sys/module/" + name
	m.Loaded = r.exists(dir)
	b, err := r.read("/proc/modules")
	if err != nil && !m.Loaded && !r.exists("/sys/module") {
		m.Reason = why("/proc/modules", err)
	}
	for line := range strings.Lines(string(b)) {
		if loaded, _, ok := strings.Cut(line, " "); ok && loaded == name {
			m.Loaded = true
		}
	}
	if f := r.text(dir + "/version"); f.Known() {
		m.Version = f.Value
	}
	if release.Known() {
		m.File = r.moduleFile(name, release.Value)
	}
	return m
}

// moduleFile looks where DKMS and distributions put modules that are not the kernel's own.
func (r Root) moduleFile(name, release string) string {
	base := "/lib/modules/" + release
	for _, stem := range []string{name, strings.ReplaceAll(name, "_", "-")} {
		for _, dir := range []string{"/updates/dkms/", "/extra/", "/updates/", "/kernel/drivers/video/", "/kernel/nvidia-fs/", "/weak-updates/", "/extra/nvidia-fs/", "/kernel/drivers/char/drm/"} {
			for _, suffix := range []string{".ko", ".ko.zst", ".ko.xz", ".ko.gz"} {
				if file := base + dir + stem + suffix; r.exists(file) {
					return file
				}
			}
		}
	}
	return ""
}
