package main

import (
	"testing"

	"strata/pkg/zarr"
)

func TestPasses(t *testing.T) {
	all, err := parsePasses("1,0.5+8,out,0.25")
	if err != nil {
		t.Fatal(err)
	}
	like := &output{levels: []level{{spec: zarr.Spec{Shape: []int{183, 4, 4}}}}}
	for i, want := range []int{200, 108, 183, 50} {
		if got := all[i].planes(200, like); got != want {
			t.Errorf("pass %d of 200 planes reads %d, want %d", i, got, want)
		}
	}
	if got := all[1].planes(12, like); got != 12 {
		t.Errorf("half of 12 planes and 8 more are %d", got)
	}
	for _, bad := range []string{"", "0", "2", "half", "0.5+x", "1,"} {
		if _, err := parsePasses(bad); err == nil {
			t.Errorf("%q was taken for passes", bad)
		}
	}
}
