package transfer

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/oct"
)

// PinnedFor returns the page-locked memory, in bytes, for which workers may plan. The rest is for tables, for direct
// file access, and for results that are downloaded between passes.
func PinnedFor(d *gpu.Device) int64 {
	limit := d.Pinned().Limit()
	return limit - limit/8
}

// shortage is an error of a plan: a worker does not fit into one kind of memory. It matches [gpu.ErrMemory], so that
// the CPU does the work unless a GPU is required.
type shortage struct {
	text string
	host bool // of host memory that is not page-locked
}

func (e *shortage) Error() string        { return e.text }
func (e *shortage) Is(target error) bool { return target == gpu.ErrMemory }

// FewerRows reports whether a worker may fit, after an error of [DeviceColumns.Workers], if it holds fewer rows of a
// tile.
func FewerRows(err error) bool {
	var s *shortage
	return errors.As(err, &s) && !s.host
}

func mib(n int64) int64 { return n>>20 + 1 }

// NoDeviceMemory returns the error for work that needs more device memory than the limit. need is in bytes.
func NoDeviceMemory(d *gpu.Device, need int64, what string) error {
	limit := d.Memory().Limit()
	return &shortage{text: fmt.Sprintf("%s takes %d MiB of device memory, there are %d MiB: %v (give a larger --gpu_mem, or --no-use_gpu)", what, mib(need), limit>>20, gpu.ErrMemory)}
}

// NoPinnedMemory returns the error for work that needs more page-locked memory than the limit. need is in bytes.
func NoPinnedMemory(d *gpu.Device, need int64, what string) error {
	return &shortage{text: fmt.Sprintf("%s on the GPU takes %d MiB of page-locked host memory, there are %d MiB, of an eighth of the machine's or job's memory (give the job more, or --no-use_gpu)",
		what, mib(need), PinnedFor(d)>>20)}
}

// NoHostMemory returns the error for work on a device that takes more host memory, in bytes, than --mem grants.
func NoHostMemory(res *oct.Resources, need int64, what string) error {
	return &shortage{fmt.Sprintf("%v (or --no-use_gpu)", res.TooLittle(need, "%s on the GPU", what)), true}
}

// Unjoined returns nil for an error for which a device that was coming does not join the CPU's work: memory is short,
// as a warning says, and the CPU goes on alone. It returns an error of the driver, or of a context that has ended.
func Unjoined(ctx context.Context, res *oct.Resources, err error) error {
	var call *gpu.Error
	if ctx.Err() != nil || errors.As(err, &call) {
		return err
	}
	res.Warnf("the GPU does not join the CPU: %v", err)
	return nil
}
