// Package host asks the system what a process may use and does use: memory, processors, limits of its control
// groups and of its address space. Run records hold these facts, and default sizes derive from them.
package host

import (
	"bufio"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// CPUModel returns the processor's name, or "" if unknown.
func CPUModel() string { return cpuModel("/proc/cpuinfo") }

func cpuModel(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	// amd64 says "model name"; arm64 has no name, only numbers of the designer.
	numbers := map[string]string{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		key, val, ok := strings.Cut(s.Text(), ":")
		if !ok {
			if len(numbers) > 0 {
				break // end of the first processor
			}
			continue
		}
		key, val = strings.TrimSpace(key), strings.TrimSpace(val)
		switch key {
		case "model name", "Processor", "cpu model":
			return val
		case "CPU implementer", "CPU part":
			numbers[key] = val
		}
	}
	if numbers["CPU part"] == "" {
		return ""
	}
	return "implementer " + numbers["CPU implementer"] + " part " + numbers["CPU part"]
}

// Resident returns the resident memory of the process in bytes, or 0 if unknown.
func Resident() int64 { return status("VmRSS:") }

// status returns a size in the process's status; 0 if it has none.
func status(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err == nil {
			return kib << 10
		}
	}
	return 0
}

// PeakResident returns the peak resident memory of the process in bytes: VmHWM on Linux, getrusage elsewhere.
func PeakResident() int64 {
	if n := status("VmHWM:"); n > 0 {
		return n
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

// Memory returns the machine's memory in bytes, or 0 if unknown.
func Memory() int64 { return memory("/proc/meminfo", "MemTotal:") }

// Available returns the bytes of memory that programs can still take without swapping: what the machine says is
// available, or what the control groups leave if that is less. It returns 0 if unknown, as on systems without /proc.
func Available() int64 { return availableBy(os.ReadFile) }

func availableBy(read func(name string) ([]byte, error)) int64 {
	n := meminfo(read, "/proc/meminfo", "MemAvailable:")
	if left, limited := cgroupLeft(read); limited && n > 0 {
		n = max(1, min(n, left))
	}
	return n
}

func memory(path, field string) int64 { return meminfo(os.ReadFile, path, field) }

// meminfo returns a field of the file; 0 if it has none.
func meminfo(read func(name string) ([]byte, error), path, field string) int64 {
	text, err := read(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil && kib > 0 {
				return kib << 10
			}
		}
	}
	return 0
}

// AddressSpace returns the limit of the process's address space (ulimit -v, h_vmem of Grid Engine) and how
// much of it is left, in bytes; limited is false if there is no limit.
func AddressSpace() (limit, left int64, limited bool) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &r) != nil || uint64(r.Cur) > math.MaxInt64 {
		return 0, 0, false
	}
	limit = int64(r.Cur)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return limit, limit, true
	}
	pages, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(pages, 10, 40)
	if err != nil {
		return limit, limit, true
	}
	return limit, max(0, limit-n*int64(os.Getpagesize())), true
}
