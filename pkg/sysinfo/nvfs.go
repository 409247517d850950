package sysinfo

import (
	"path"
	"strings"
)

const nvfsDir = "/proc/driver/nvidia-fs"

// NvidiaFS describes the kernel module that moves data between storage and GPUs.
type NvidiaFS struct {
	Module  Module       `json:"module"`
	Version Fact[string] `json:"version"` // "2.28"
	Drivers []string     `json:"drivers"` // storage drivers that have registered with it: "nvme", "rpcrdma", "lnet" …
	Bridges []string     `json:"bridges"` // PCI addresses of bridges with ACS that it met
	Stats   *NvfsStats   `json:"stats"`   // null where Version has a reason
	Source  string       `json:"source"`  // the newest DKMS source in /usr/src, or ""
	Reason  string       `json:"reason"`  // why the module is not in use
}

func (r Root) nvidiaFS(release Fact[string]) NvidiaFS {
	n := NvidiaFS{Module: r.module("nvidia_fs", release), Drivers: []string{}, Bridges: []string{}}
	n.Version = convert(r.text(nvfsDir+"/version"), func(s string) (string, string) {
		v := strings.TrimSpace(strings.TrimPrefix(s, "version:"))
		if len(numbers(v)) < 2 {
			return "", nvfsDir + "/version has no version"
		}
		return clip(v), ""
	})
	for _, name := range r.list("/usr/src") {
		if v, ok := strings.CutPrefix(name, "nvidia-fs-"); ok && (n.Source == "" || versionLess(path.Base(n.Source)[len("nvidia-fs-"):], v)) {
			n.Source = "/usr/src/" + name
		}
	}
	if !n.Version.Known() {
		switch {
		case n.Module.Reason != "":
			n.Reason = n.Module.Reason
		case n.Module.Loaded:
			n.Reason = "the module is loaded, but " + n.Version.Reason
		default:
			n.Reason = "the module nvidia_fs is not loaded"
		}
		return n
	}
	for line := range strings.Lines(r.text(nvfsDir + "/modules").Value) { // "nvme: N/A", or the version of its module
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "" {
			n.Drivers = append(n.Drivers, strings.TrimSpace(name))
		}
	}
	n.Bridges = append(n.Bridges, strings.Fields(r.text(nvfsDir+"/bridges").Value)...)
	if f := r.text(nvfsDir + "/stats"); f.Known() {
		n.Stats = parseNvfsStats(f.Value)
	}
	return n
}
