package run

import (
	"fmt"
	"math"

	"strata/pkg/host"
)

// shortage describes the part of a run for which memory held the smallest share of the workers.
type shortage struct {
	workers, useful int   // that memory held, and that would have had work
	mem             int64 // that no part would be short of
}

// Crewed notes in the record how many workers a part of the run computes with, of how many that would have work, and
// the --mem that would let as many compute. If memory holds fewer, the end of the run warns of it, once.
func (r *Run) Crewed(workers, useful int, mem int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Workers = max(r.record.Workers, workers)
	if workers >= useful {
		return
	}
	s := &r.idle
	if s.useful == 0 || workers*s.useful < s.workers*useful {
		s.workers, s.useful = workers, useful
	}
	s.mem = max(s.mem, mem)
	r.record.MemForAll = roundUp(s.mem)
}

// warnOfIdleCores says with how much memory each core would have had a worker.
func (r *Run) warnOfIdleCores() {
	r.mu.Lock()
	s, mem := r.idle, r.record.MemForAll
	r.mu.Unlock()
	if s.useful == 0 {
		return
	}
	limits, _ := memoryLimits()
	most, all := memCeiling(limits), "all"
	if n := host.Memory(); n > 0 {
		most = min(most, n)
	}
	if s.useful < r.Options.Threads {
		all = fmt.Sprint(s.useful)
	}
	if mem > most {
		r.warnOnce("memory for %d of %d cores, which the others help: %s need --mem %s, more than this job has", s.workers, r.Options.Threads, all, sizeFlag(mem))
		return
	}
	r.warnOnce("memory for %d of %d cores, which the others help: --mem %s is enough for %s", s.workers, r.Options.Threads, sizeFlag(mem), all)
}

// roundUp returns a size that is easy to read and at least n.
func roundUp(n int64) int64 {
	step := int64(1 << 20)
	for n > 32*step && step < 1<<40 {
		step *= 2
	}
	return (min(n, math.MaxInt64-step) + step - 1) / step * step
}

// sizeFlag writes a size of whole MiB for a flag.
func sizeFlag(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", n>>30)
	}
	return fmt.Sprintf("%dMiB", n>>20)
}
