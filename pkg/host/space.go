package host

import (
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

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
