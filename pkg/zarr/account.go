package zarr

import (
	"context"
	"encoding/json"
)

// Account states how many chunks of an array its writer stored, so that one that got lost can be
// told from one that was left out: by the format both read as the fill value. It is the array's
// attribute [AccountKey]. Programs that do not know it and give the array another shape or other
// chunks make it void; those that remove chunks of nothing but the fill value make it wrong.
type Account struct {
	Chunks int64 `json:"chunks"`        // of the grid of [Array.Chunks]
	Stored int64 `json:"stored_chunks"` // of them
}

// AccountKey names the attribute of an [Account].
const AccountKey = "strata"

// Account returns what the array says of its chunks; ok is false where it says nothing that fits its
// grid.
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

// WriteAccount states in the array's attributes how many chunks are stored, where each was written
// once, through a or an array made of it by With. Chunks of an array with shards in shards are not
// counted: there it removes the account.
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

// gridCount returns the number of chunks of an array; ok is false where it cannot be counted.
func gridCount(shape, chunks []int) (n int64, ok bool) {
	grid := make([]int, len(shape))
	for d := range grid {
		grid[d] = ceilDiv(shape[d], chunks[d])
	}
	v, ok := volume(grid, 1)
	return int64(v), ok
}
