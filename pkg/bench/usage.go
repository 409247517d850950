package bench

import (
	"os"
	"syscall"
	"time"

	"strata/pkg/host"
)

// Usage records the CPU time that the process had used when a measurement began.
type Usage struct{ cpu time.Duration }

// Begin records the process's usage and, where possible, resets the system's record of peak resident memory.
func Begin() Usage {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else it is that of the whole run
	return Usage{cpu: CPUTime()}
}

// End returns the processor seconds used since Begin, of all threads, user and system, and the peak resident
// memory in bytes since Begin, or since the start of the process if the system cannot reset it.
func (u Usage) End() (seconds float64, peak int64) {
	return (CPUTime() - u.cpu).Seconds(), host.PeakResident()
}

// CPUTime returns the processor time that the process used so far, of all threads, user and system.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
