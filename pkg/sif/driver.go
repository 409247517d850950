package sif

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// driverLibraries lists the prefixes of libraries of NVIDIA's driver that a computing program may open.
// GPUDirect Storage belongs to it: its library comes from the machine if the image has none.
var driverLibraries = []string{
	"libcuda.so", "libcudadebugger.so", "libnvidia-allocator.so", "libnvidia-cfg.so", "libnvidia-gpucomp.so", "libnvidia-ml.so",
	"libnvidia-nvvm.so", "libnvidia-nvvm70.so", "libnvidia-opencl.so", "libnvidia-ptxjitcompiler.so", "libnvidia-tileiras.so",
	"libnvidia-pkcs11", "libnvidia-sandboxutils.so",
}

// driverPrograms and driverPlaces are looked up by name. Device files need no list, since all of /dev is bound.
var (
	driverPrograms = []string{"nvidia-smi", "nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}
	driverPlaces   = []string{"/run/udev", "/etc/cufile.json", "/run/nvidia-persistenced/socket"}
)

// DriverFound reports whether this machine has any part of NVIDIA's driver that [Run] could bring into an
// image.
func DriverFound() bool { return len(driverFiles()) > 0 }

// driverFiles lists the files of the driver on this machine.
func driverFiles() []Bind {
	var out []Bind
	for _, tool := range []string{"/sbin/ldconfig", "/usr/sbin/ldconfig"} {
		if text, err := exec.Command(tool, "-p").Output(); err == nil {
			out = librariesOf(text)
			break
		}
	}
	if len(out) == 0 { // Windows' own Linux has them here, and in no cache
		names, _ := filepath.Glob("/usr/lib/wsl/lib/*.so*")
		for _, name := range names {
			out = append(out, Bind{Source: name, Target: libsDir + "/" + filepath.Base(name), ReadOnly: true})
		}
	}
	for _, name := range driverPrograms {
		if file, err := exec.LookPath(name); err == nil {
			out = append(out, Bind{Source: file, Target: "/usr/bin/" + name, ReadOnly: true})
		}
	}
	for _, name := range driverPlaces {
		if _, err := os.Stat(name); err == nil && len(out) > 0 { // alone they are of no use
			out = append(out, Bind{Source: name, Target: name})
		}
	}
	return out
}

// librariesOf finds the driver's libraries in the output of `ldconfig -p`: lines "NAME (libc6,x86-64) => PATH". It
// leaves out libraries for other architectures.
func librariesOf(cache []byte) []Bind {
	var out []Bind
	lines := bufio.NewScanner(bytes.NewReader(cache))
	for lines.Scan() {
		left, file, ok := strings.Cut(strings.TrimSpace(lines.Text()), " => ")
		name, kind, _ := strings.Cut(left, " ")
		if !ok || !strings.Contains(kind, "x86-64") && !strings.Contains(kind, "AArch64") {
			continue
		}
		wanted := slices.ContainsFunc(driverLibraries, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		target := libsDir + "/" + name
		if wanted && !slices.ContainsFunc(out, func(b Bind) bool { return b.Target == target }) {
			out = append(out, Bind{Source: file, Target: target, ReadOnly: true})
		}
	}
	return out
}
