// Package dynlib opens shared libraries at run time and calls them without cgo.
//
//	lib, err := dynlib.Open("STRATA_LIBCUFILE", "libcufile.so.0")
//	var cufile struct {
//		GetVersion func(version *int32) uint64 `sym:"cuFileGetVersion"`
//	}
//	err = dynlib.Bind(lib, &cufile)
//
// A handle is never closed: the libraries that are opened here start threads of their
// own. With the build tag nocuda, and on systems other than Linux on amd64 and arm64, nothing can be
// opened and Open says so.
package dynlib
