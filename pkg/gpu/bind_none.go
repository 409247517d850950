//go:build !linux || !(amd64 || arm64) || nocuda

package gpu

import "errors"

func openLibrary(string, ...string) (uintptr, error) {
	return 0, errors.New("this build has no CUDA (build tag nocuda, or a system without it)")
}

func bind(uintptr, any) error { return nil }

func symbol(uintptr, string) uintptr { return 0 }
