package zarr

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// A metadata document that a server never ends is refused when it is larger than any is.
func TestEndlessDocument(t *testing.T) {
	var sent atomic.Int64
	many := []byte(strings.Repeat(`{"zarr_format":`, 4096))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(many)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	st := store.HTTP(server.URL)
	defer st.Close()
	if _, err := Open(context.Background(), st, ""); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if n := sent.Load(); n > meta.MaxDocument+16<<20 { // what is on its way when nobody reads any more
		t.Errorf("the server sent %d bytes", n)
	}
}

// What is fetched ahead is bounded by what the program gives for it.
func TestSetAhead(t *testing.T) {
	defer SetAhead(AheadBytes)
	for size, want := range map[int64]int{AheadBytes: 8, 3 << 10: 3, 100: 0} {
		SetAhead(size)
		held := ahead.take(1<<10, 8)
		if held != want {
			t.Errorf("of %d bytes: %d of 1 KiB, want %d", size, held, want)
		}
		SetAhead(0) // while some are held
		if n := ahead.take(1<<10, 1); n != 0 {
			t.Errorf("%d more where there is nothing", n)
		}
		ahead.give(1<<10, held)
	}
	if SetAhead(AheadBytes); ahead.free != AheadBytes {
		t.Errorf("%d bytes of the pool were not given back", AheadBytes-ahead.free)
	}
}
