package sysinfo

import (
	"path"
	"strings"
)

const nvfsDir = "/proc/driver/nvidia-fs"

// NvidiaFS describes the kernel module that moves data between storage and GPUs.
type NvidiaFS struct {
	Module  Module         `json:"module"`
	Version Fact[string]   `json:"version"` // "2.28"
	Devices Fact[int64]    `json:"devices"` // that it serves
	Drivers []NvfsDriver   `json:"drivers"` // storage drivers that have registered with it
	Bridges []string       `json:"bridges"` // PCI addresses of bridges with ACS that it met
	Stats   *NvfsStats     `json:"stats"`   // null where Version has a reason
	Peers   []NvfsPeer     `json:"peers"`
	P2P     []NvfsAffinity `json:"affinity"`
	Source  string         `json:"source"` // the newest DKMS source in /usr/src, or ""
	Reason  string         `json:"reason"` // why the module is not in use
}

// NvfsDriver is a storage driver that nvidia-fs can work with.
type NvfsDriver struct {
	Name    string `json:"name"` // "nvme", "rpcrdma", "lnet" …
	Version string `json:"version"`
}

// Has reports whether a storage driver has registered.
func (n NvidiaFS) Has(driver string) bool {
	for _, d := range n.Drivers {
		if d.Name == driver {
			return true
		}
	}
	return false
}

func (r Root) nvidiaFS(release Fact[string]) NvidiaFS {
	n := NvidiaFS{Module: r.module("nvidia_fs", release), Drivers: []NvfsDriver{}, Bridges: []string{}, Peers: []NvfsPeer{}, P2P: []NvfsAffinity{}}
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
		n.Devices = Fact[int64]{Reason: n.Version.Reason}
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
	devices := r.text(nvfsDir + "/devcount")
	if !devices.Known() {
		devices = r.text(nvfsDir + "/devices")
	}
	n.Devices = number(devices, nvfsDir+"/devcount")
	if f := r.text(nvfsDir + "/modules"); f.Known() {
		n.Drivers = parseNvfsDrivers(f.Value)
	}
	if f := r.text(nvfsDir + "/bridges"); f.Known() {
		n.Bridges = append(n.Bridges, strings.Fields(f.Value)...)
	}
	if f := r.text(nvfsDir + "/stats"); f.Known() {
		n.Stats = parseNvfsStats(f.Value)
	}
	if f := r.text(nvfsDir + "/peer_distance"); f.Known() {
		n.Peers = parseNvfsPeers(f.Value)
	}
	if f := r.text(nvfsDir + "/peer_affinity"); f.Known() {
		n.P2P = parseNvfsAffinity(f.Value)
	}
	return n
}

// parseNvfsDrivers reads lines "nvme: N/A", the version being that of the driver's module.
func parseNvfsDrivers(text string) []NvfsDriver {
	list := []NvfsDriver{}
	for line := range strings.Lines(text) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "" {
			list = append(list, NvfsDriver{strings.TrimSpace(name), strings.TrimSpace(version)})
		}
	}
	return list
}
