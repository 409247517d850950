//go:build !linux || !(amd64 || arm64) || nocuda

package dynlib

import "errors"

// Open returns an error on this system.
func Open(string, ...string) (uintptr, error) {
	return 0, errors.New("this build opens no libraries (build tag nocuda, or a system other than Linux on amd64 and arm64)")
}

// Bind is never called on this system, where no library opens.
func Bind(uintptr, any) error { return nil }

// BindAs is never called on this system, where no library opens.
func BindAs(uintptr, any, func(tag string) string) error { return nil }

// Symbol is never called on this system, where no library opens.
func Symbol(uintptr, string) uintptr { return 0 }

// Callback is never called on this system, where no library opens.
func Callback(func(data uintptr)) uintptr { return 0 }

// CallbackOf is never called on this system, where no library opens.
func CallbackOf(any) uintptr { return 0 }
