package unxz_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/ulikunitz/xz"

	"strata/pkg/zarr/codec/unxz"
)

func stored(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Streams that follow each other decode to one; what does not fit, what is cut off and what was damaged is refused.
func TestXZ(t *testing.T) {
	data := bytes.Repeat([]byte("tiles and strips "), 3000)
	src := bytes.Repeat(stored(t, data), 2)
	dst := make([]byte, 2*len(data))
	n, err := unxz.XZ(context.Background(), dst, src)
	if err != nil || n != len(dst) || !bytes.Equal(dst, append(data, data...)) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if _, err := unxz.XZ(context.Background(), dst[1:], src); !errors.Is(err, unxz.ErrTooLong) {
		t.Errorf("too long: %v", err)
	}
	if _, err := unxz.XZ(context.Background(), dst, src[:len(src)-1]); err == nil {
		t.Error("a truncated footer is accepted")
	}
	src[len(src)/4] ^= 1
	if _, err := unxz.XZ(context.Background(), dst, src); err == nil {
		t.Error("a flipped bit is accepted")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := unxz.XZ(ctx, dst, src); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
