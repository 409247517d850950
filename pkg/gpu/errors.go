package gpu

import (
	"errors"
	"fmt"
	"strings"
)

// Unavailable reports why no GPU can be used. It is not a failure: unless a GPU was required, a program
// continues on the CPU.
type Unavailable struct {
	Reason   string
	NoDriver bool // the machine has no driver at all, as one without a GPU
}

func (e *Unavailable) Error() string { return "no usable GPU: " + e.Reason }

func unavailable(format string, args ...any) error {
	return &Unavailable{Reason: fmt.Sprintf(format, args...)}
}

var (
	// ErrMemory is wrapped by errors of a device with too little memory.
	ErrMemory = errors.New("out of device memory")
	// ErrLost is wrapped by errors that destroy the context: no later call succeeds, and the device's data
	// are lost.
	ErrLost = errors.New("the GPU's context is lost")
)

// Error is a failed call of the driver.
type Error struct {
	Call string // as cuda.h names it, or the kernel
	Code int    // CUresult
	Text string // the driver's description of the code
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (CUDA error %d)", e.Call, e.Text, e.Code) }

// Is reports whether the error is of the kind of ErrMemory or ErrLost.
func (e *Error) Is(target error) bool {
	return target == ErrMemory && e.Code == codeOutOfMemory || target == ErrLost && sticky(e.Code)
}

// Codes of CUresult (cuda.h 12.0) that are told apart.
const (
	codeOutOfMemory = 2
	codeNoDevice    = 100
	codeContextGone = 709
	codeUnknown     = 999
)

// sticky reports whether a code stays with the context for the rest of its life:
// faults of kernels (700, 702, 710, 714 to 719), of the hardware (214, 215, 220, 226), of the
// connection to the device (46, 101, 709, 721, 999), and of the Multi-Process Service through which
// processes share it (805 to 807, 810: its server is gone, refuses them, or another client failed).
func sticky(code int) bool {
	switch code {
	case 46, 101, 214, 215, 220, 226, 700, 702, codeContextGone, 710, 714, 715, 716, 717, 718, 719, 721, 805, 806, 807, 810, codeUnknown:
		return true
	}
	return false
}

// Reason returns an error in one line; for an [Unavailable], only the reason; for nil, "".
func Reason(err error) string {
	if err == nil {
		return ""
	}
	var no *Unavailable
	if errors.As(err, &no) {
		return no.Reason
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
