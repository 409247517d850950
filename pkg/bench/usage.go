package bench

import (
	"os"
	"syscall"
	"time"

	"strata/pkg/host"
)

// Usage is what the process had used when a measurement began.
type Usage struct{ cpu time.Duration }

// Begin notes what the process has used, and lets the system forget its peak of resident memory, where it does.
func Begin() Usage {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else it is that of the whole run
	return Usage{cpu: CPUTime()}
}

// End returns the processor seconds that the process used since, of all threads together, user and system;
// and the most
// bytes that it had in memory since, or ever where the system does not forget that.
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
