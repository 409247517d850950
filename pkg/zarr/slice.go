package zarr

import (
	"context"
	"fmt"

	"strata/pkg/dtype"
)

// ReadSlice reads a region into a slice of numbers, like [Array.Read]. T must be the array's element type;
// nothing is converted.
func ReadSlice[T dtype.Element](ctx context.Context, a *Array, r Region, dst []T) error {
	if err := checkElement[T](a); err != nil {
		return err
	}
	return a.Read(ctx, r, dtype.Bytes(dst))
}

// WriteSlice writes a region from a slice of numbers, like [Array.Write]. T must be the array's element type;
// nothing is converted.
func WriteSlice[T dtype.Element](ctx context.Context, a *Array, r Region, src []T) error {
	if err := checkElement[T](a); err != nil {
		return err
	}
	return a.Write(ctx, r, dtype.Bytes(src))
}

func checkElement[T dtype.Element](a *Array) error {
	if t := dtype.Of[T](); t != a.DType() {
		return fmt.Errorf("%s: elements are %s, not %s", a.Location(), a.DType(), t)
	}
	return nil
}
