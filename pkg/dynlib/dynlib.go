// Package dynlib opens shared libraries at run time and calls them without cgo.
//
//	lib, err := dynlib.Open("STRATA_LIBCUFILE", "libcufile.so.0")
//	var cufile struct {
//		GetVersion func(version *int32) uint64 `sym:"cuFileGetVersion"`
//	}
//	err = dynlib.Bind(lib, &cufile)
//
// It never closes a handle, since these libraries start threads of their own. With the build tag nocuda, and
// on systems other than Linux on amd64 and arm64, Open always returns an error.
package dynlib
