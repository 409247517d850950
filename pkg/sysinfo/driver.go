package sysinfo

import (
	"path"
	"strings"
)

// Driver is NVIDIA's kernel driver.
type Driver struct {
	Version  Fact[string] `json:"version"`  // "565.57.01"
	Open     Fact[bool]   `json:"open"`     // the open kernel modules, not the proprietary ones
	Arch     string       `json:"arch"`     // "x86_64", "aarch64"; "" if it does not say
	Registry string       `json:"registry"` // parameter NVreg_RegistryDwords
	Module   Module       `json:"module"`
	PeerMem  Module       `json:"nvidia_peermem"` // GPU memory for RDMA
	GPUs     []DriverGPU  `json:"gpus"`
}

// DriverGPU is a device as the driver describes it below /proc.
type DriverGPU struct {
	Bus   string `json:"bus"` // "0000:41:00.0"
	Model string `json:"model"`
	UUID  string `json:"uuid"`
}

func (r Root) driver(release Fact[string]) Driver {
	d := Driver{GPUs: []DriverGPU{}}
	text := r.text("/proc/driver/nvidia/version")
	d.Version = convert(text, func(s string) (string, string) { v, _, why := parseDriverVersion(s); return v, why })
	d.Open = convert(text, func(s string) (bool, string) { _, open, why := parseDriverVersion(s); return open, why })
	for _, arch := range []string{"x86_64", "aarch64"} {
		if first, _, _ := strings.Cut(text.Value, "\n"); strings.Contains(first, arch) {
			d.Arch = arch
		}
	}
	if f := r.text("/proc/driver/nvidia/params"); f.Known() {
		d.Registry = strings.Trim(fields(f.Value)["RegistryDwords"], `"`)
	}
	d.Module = r.module("nvidia", release)
	d.PeerMem = r.module("nvidia_peermem", release)
	const dir = "/proc/driver/nvidia/gpus"
	for _, bus := range r.list(dir) {
		f := r.text(path.Join(dir, bus, "information"))
		if !f.Known() {
			continue
		}
		g := parseGPU(f.Value)
		if g.Bus == "" {
			g.Bus = bus
		}
		g.Bus = canonicalBus(g.Bus)
		d.GPUs = append(d.GPUs, g)
	}
	return d
}

// parseDriverVersion reads the first line of /proc/driver/nvidia/version, which is one of
//
//	NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
//	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (…)
func parseDriverVersion(text string) (version string, open bool, why string) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "NVRM version:")
		if !ok {
			continue
		}
		for _, word := range strings.Fields(rest) {
			if len(numbers(word)) >= 2 && strings.Trim(word, "0123456789.") == "" {
				return word, strings.Contains(rest, "Open Kernel Module"), ""
			}
		}
	}
	return "", false, "/proc/driver/nvidia/version has no version of NVRM"
}

func parseGPU(text string) DriverGPU {
	f := fields(text)
	return DriverGPU{Bus: f["Bus Location"], Model: f["Model"], UUID: f["GPU UUID"]}
}

// canonicalBus writes a PCI address as /sys does: "00000000:41:00.0" and "41:00.0" are 0000:41:00.0.
func canonicalBus(bus string) string {
	bus = strings.ToLower(strings.TrimSpace(bus))
	if strings.Count(bus, ":") == 1 {
		bus = "0000:" + bus
	}
	if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) > 4 && strings.Trim(domain[:len(domain)-4], "0") == "" {
		bus = domain[len(domain)-4:] + ":" + rest
	}
	return bus
}
