package zarr_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Shards that are written chunk by chunk have the bytes of those that are written at once,
// in whatever order the chunks come and wherever those before their turn wait.
func TestShardOrder(t *testing.T) {
	ctx := t.Context()
	r := rand.New(rand.NewPCG(1, 2))
	for name, chain := range map[string]codec.Chain{
		"raw": nil, "zstd": {codec.Zstd(1, false)}, "fixed": {codec.CRC32C()},
	} {
		for _, omit := range []bool{false, true} {
			spec := zarr.Spec{Shape: []int{22, 50, 40}, Chunks: []int{4, 8, 16}, Shard: []int{16, 32, 32}, DType: dtype.Uint16, Codecs: chain}
			var opts []zarr.Option
			if omit {
				opts = append(opts, zarr.OmitFill())
			}
			create := func(st store.Writer, opts ...zarr.Option) *zarr.Array {
				a, err := zarr.CreateArray(ctx, st, "", spec, opts...)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			want := create(store.Memory(), opts...)
			src := make([]byte, 22*50*40*2)
			for i := range src {
				if i < len(src)/2 || i > len(src)*2/3 { // chunks of nothing but 0 in the middle
					src[i] = byte(r.IntN(5))
				}
			}
			if err := want.Write(ctx, want.Bounds(), src); err != nil {
				t.Fatal(err)
			}
			for pool, limit := range map[string]int64{"no pool": -1, "empty pool": 0, "small pool": 12 << 10, "pool": 1 << 20} {
				t.Run(fmt.Sprintf("%s/omit %v/%s", name, omit, pool), func(t *testing.T) {
					opts := opts
					var held *mem.Pool
					if limit >= 0 {
						held = mem.NewPool(limit)
						opts = append(opts[:len(opts):len(opts)], zarr.Hold(held))
					}
					for _, goroutines := range []int{1, 4} {
						dir := t.TempDir()
						a := create(store.Folder(dir), opts...)
						writeShuffled(t, r, a, src, goroutines)
						sameShards(t, a, want)
						noHiddenFiles(t, dir)
						if held != nil && limit > 0 { // all is given back
							b, err := held.TryGet(int(limit))
							if b == nil || err != nil {
								t.Errorf("memory of the pool is still held (%v)", err)
							}
							b.Release()
						}
					}
				})
			}
		}
	}
}

// writeShuffled writes all chunks of an array in random order, shard by shard.
func writeShuffled(t *testing.T, r *rand.Rand, a *zarr.Array, src []byte, goroutines int) {
	ctx := t.Context()
	shape, chunks, shard := a.Shape(), a.Chunks(), a.Shard()
	each := func(region zarr.Region, unit []int, f func(index []int)) {
		at := make([]int, len(unit))
		for at[0] = region.Start[0] / unit[0]; at[0]*unit[0] < region.Start[0]+region.Shape[0]; at[0]++ {
			for at[1] = region.Start[1] / unit[1]; at[1]*unit[1] < region.Start[1]+region.Shape[1]; at[1]++ {
				for at[2] = region.Start[2] / unit[2]; at[2]*unit[2] < region.Start[2]+region.Shape[2]; at[2]++ {
					f(append([]int(nil), at...))
				}
			}
		}
	}
	each(a.Bounds(), shard, func(file []int) {
		w, err := a.NewShard(ctx, file)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		var list [][]int
		each(w.Region(), chunks, func(index []int) { list = append(list, index) })
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := g; i < len(list); i += goroutines {
					region, err := a.ChunkRegion(list[i])
					if err != nil {
						t.Error(err)
						return
					}
					if err := w.WriteChunk(ctx, list[i], cut(src, shape, region, 2)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := w.Commit(ctx); err != nil {
			t.Error(err)
		}
	})
}

// sameShards compares the chunk files of two arrays, byte by byte.
func sameShards(t *testing.T, got, want *zarr.Array) {
	t.Helper()
	at := make([]int, 3)
	for at[0] = range 2 {
		for at[1] = range 2 {
			for at[2] = range 2 {
				key := got.ChunkKey(at)
				a, errA := got.Store().Get(t.Context(), key, nil, -1)
				b, errB := want.Store().Get(t.Context(), key, nil, -1)
				if (errA == nil) != (errB == nil) || !bytes.Equal(a, b) {
					t.Errorf("%s: %d bytes (%v), want %d (%v)", key, len(a), errA, len(b), errB)
				}
			}
		}
	}
}

// noHiddenFiles reports files that nobody will remove.
func noHiddenFiles(t *testing.T, dir string) {
	t.Helper()
	err := walkFiles(dir, func(path string) {
		if strings.Contains(path, ".tmp-") {
			t.Errorf("left behind: %s", path)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func walkFiles(dir string, f func(path string)) error {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		path := dir + "/" + e.Name()
		if e.IsDir() {
			err = errors.Join(err, walkFiles(path, f))
		} else {
			f(path)
		}
	}
	return err
}

// Whatever fails when a chunk is set aside and when it moves to its place is the error of the
// call, and nothing stays.
func TestShardOrderFaults(t *testing.T) {
	ctx := t.Context()
	for _, op := range []string{"create", "writeat", "readback"} {
		for n := range 8 {
			dir := t.TempDir()
			st := &faulty{Writer: store.Folder(dir), err: errInjected, only: op}
			st.left.Store(100)
			a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Shape: []int{32}, Chunks: []int{8}, Shard: []int{32}, DType: dtype.Uint8, Codecs: codec.Chain{codec.Zstd(1, false)}})
			if err != nil {
				t.Fatal(err)
			}
			st.left.Store(int64(n))
			var errs []error
			w, err := a.NewShard(ctx, []int{0})
			if err == nil {
				for _, i := range []int{2, 3, 1, 0} {
					errs = append(errs, w.WriteChunk(ctx, []int{i}, bytes.Repeat([]byte{byte(i + 1)}, 8)))
				}
				if err = errors.Join(errs...); err == nil {
					err = w.Commit(ctx)
				}
				w.Abort()
			}
			fired := st.left.Load() < 0
			st.left.Store(100)
			if fired != errors.Is(err, errInjected) {
				t.Errorf("%s %d: fault %v, error %v", op, n, fired, err)
			}
			noHiddenFiles(t, dir)
			got := make([]byte, 32)
			if err := a.Read(ctx, a.Bounds(), got); err != nil {
				t.Errorf("%s %d: %v", op, n, err)
			}
			want := make([]byte, 32)
			if !fired {
				for i := range want {
					want[i] = byte(i/8 + 1)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s %d: %v", op, n, got)
			}
		}
	}
}
