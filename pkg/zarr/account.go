package zarr

import (
	"context"
	"encoding/json"
)

// Account records how many chunks of an array its writer stored. It tells a chunk that was lost from one that
// was deliberately left out; the format itself reads both as the fill value. It is stored as the attribute
// [AccountKey].
//
// Other programs do not know it: if they change the shape or the chunk grid, the account no longer fits and
// is ignored; if they remove chunks that hold only the fill value, it is wrong.
type Account struct {
	Chunks int64 `json:"chunks"`        // chunks in the grid of [Array.Chunks]
	Stored int64 `json:"stored_chunks"` // chunks among these that were stored
}

// AccountKey names the attribute of an [Account].
const AccountKey = "strata"

// Account returns the account in the array's attributes; ok is false if there is none or it does not fit the
// chunk grid.
func (a *Array) Account() (acc Account, ok bool) {
	raw := a.Attributes()[AccountKey]
	n, counted := gridCount(a.meta.shape, a.Chunks())
	if raw == nil || !counted || json.Unmarshal(raw, &acc) != nil {
		return Account{}, false
	}
	if acc.Chunks != n || acc.Stored < 0 || acc.Stored > n {
		return Account{}, false
	}
	return acc, true
}

// WriteAccount writes the number of stored chunks to the array's attributes. It expects that each chunk was
// written exactly once, through a or an array derived from it by With. Arrays with nested shards do not count
// their chunks; for them it removes the account.
func (a *Array) WriteAccount(ctx context.Context) error {
	attrs := map[string]any{}
	for k, v := range a.Attributes() {
		attrs[k] = v
	}
	delete(attrs, AccountKey)
	nested := a.meta.pipe.shard != nil && !a.meta.pipe.streams()
	if n, ok := gridCount(a.meta.shape, a.Chunks()); ok && !nested {
		attrs[AccountKey] = Account{n, n - a.omitted.Load()}
	}
	return a.SetAttributes(ctx, attrs)
}

// gridCount returns the number of chunks of an array; ok is false if it overflows.
func gridCount(shape, chunks []int) (n int64, ok bool) {
	grid := make([]int, len(shape))
	for d := range grid {
		grid[d] = ceilDiv(shape[d], chunks[d])
	}
	v, ok := volume(grid, 1)
	return int64(v), ok
}
