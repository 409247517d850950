// Package fill reads streams into buffers whose size is known beforehand.
package fill

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong is wrapped by errors about a stream that has more bytes than the buffer.
var ErrTooLong = errors.New("stream has more data than expected")

// TooLong returns ErrTooLong with the expected number of bytes.
func TooLong(want int) error { return fmt.Errorf("%w (%d)", ErrTooLong, want) }

// piece is the number of bytes read between two checks of the context.
const piece = 1 << 20

// From reads r to its end into dst and returns the number of bytes. It fails with ErrTooLong if there are
// more than len(dst), and with the error of ctx when that ends; n is the number of bytes read before.
func From(ctx context.Context, dst []byte, r io.Reader) (n int, err error) {
	var more [1]byte
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		into := dst[n:min(n+piece, len(dst))]
		if len(into) == 0 {
			into = more[:]
		}
		k, err := r.Read(into)
		if k > 0 && n == len(dst) {
			return n, TooLong(n)
		}
		n += k
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
