//go:build linux && (amd64 || arm64) && !nocuda

package dynlib

import (
	"fmt"
	"os"
	"reflect"
	"runtime"

	"github.com/ebitengine/purego"
)

// Open opens a shared library: the file that the variable names, else the
// first of the names that the loader finds. Only the last name's error is given.
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

// Bind fills each function field of *table by the symbol of its tag. All are looked
// up before one is registered, because registering a missing one panics.
func Bind(lib uintptr, table any) error {
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("sym")
		if _, err := purego.Dlsym(lib, name); err != nil {
			return fmt.Errorf("it has no %s", name)
		}
	}
	for i := range v.NumField() {
		purego.RegisterLibFunc(v.Field(i).Addr().Interface(), lib, v.Type().Field(i).Tag.Get("sym"))
	}
	return nil
}

// Symbol is the address of a symbol, 0 if the library has not got it.
func Symbol(lib uintptr, name string) uintptr {
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		return 0
	}
	return p
}
