//go:build linux && (amd64 || arm64) && !nocuda

package dynlib

import (
	"fmt"
	"os"
	"reflect"
	"runtime"

	"github.com/ebitengine/purego"
)

// Open opens a shared library: the file that the environment variable names, or the first of the names that
// the loader finds. It returns only the last name's error.
func Open(variable string, names ...string) (uintptr, error) {
	if file := os.Getenv(variable); file != "" {
		names = []string{file}
	}
	runtime.LockOSThread() // the loader keeps its error message by thread
	defer runtime.UnlockOSThread()
	var err error
	for _, name := range names {
		var lib uintptr
		if lib, err = purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
			return lib, nil
		}
	}
	return 0, err
}

// Bind sets each function field of *table to the symbol in its tag. It looks all of them up before it
// registers any, because registering a missing one panics.
func Bind(lib uintptr, table any) error {
	return BindAs(lib, table, func(tag string) string { return tag })
}

// BindAs binds functions like [Bind] for libraries with several families of them: name makes the symbol from
// the tag.
func BindAs(lib uintptr, table any, name func(tag string) string) error {
	v := reflect.ValueOf(table).Elem()
	symbol := func(i int) string { return name(v.Type().Field(i).Tag.Get("sym")) }
	for i := range v.NumField() {
		if _, err := purego.Dlsym(lib, symbol(i)); err != nil {
			return fmt.Errorf("it has no %s", symbol(i))
		}
	}
	for i := range v.NumField() {
		purego.RegisterLibFunc(v.Field(i).Addr().Interface(), lib, symbol(i))
	}
	return nil
}

// Symbol returns the address of a symbol, or 0 if the library does not have it.
func Symbol(lib uintptr, name string) uintptr {
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		return 0
	}
	return p
}

// Callback returns the address of a C function that calls f. It is never freed, so programs should make few.
func Callback(f func(data uintptr)) uintptr {
	return purego.NewCallback(func(data uintptr) uintptr { f(data); return 0 })
}

// CallbackOf returns the address of a C function that calls f, a func with pointer-sized numbers as arguments
// and one as result. It is never freed.
func CallbackOf(f any) uintptr { return purego.NewCallback(f) }
