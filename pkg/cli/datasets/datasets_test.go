package datasets

import (
	"context"
	"reflect"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

func TestDescribe(t *testing.T) {
	codecs, err := codec.FromFlag("zstd:3", dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	a, err := zarr.CreateArray(context.Background(), store.Memory(), "a", zarr.Spec{
		Format: 3, Shape: []int{10, 20, 30}, Chunks: []int{5, 5, 5}, Shard: []int{10, 10, 10}, DType: dtype.Uint16, Codecs: codecs,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := runrecord.Dataset{
		Path: "x/a", Shape: []int{10, 20, 30}, DType: "uint16", Chunks: []int{5, 5, 5}, Shard: []int{10, 10, 10}, Codecs: []string{"zstd"}, Format: 3,
	}
	if got := Describe(a, "x/a"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := Bytes(a); got != 12000 {
		t.Errorf("%d bytes", got)
	}
}
