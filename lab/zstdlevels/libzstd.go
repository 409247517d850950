package main

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libzstd is the library, opened at run time.
type libzstd struct {
	version    func() string
	compress   func(ctx uintptr, dst unsafe.Pointer, capacity uintptr, src unsafe.Pointer, n uintptr, level int32) uintptr
	decompress func(ctx uintptr, dst unsafe.Pointer, capacity uintptr, src unsafe.Pointer, n uintptr) uintptr
	ctx, dctx  uintptr // of encoding, of decoding
}

func openLibzstd(path string) (*libzstd, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("libzstd: %w", err)
	}
	var z libzstd
	var create, createDecoder func() uintptr
	purego.RegisterLibFunc(&z.version, h, "ZSTD_versionString")
	purego.RegisterLibFunc(&z.compress, h, "ZSTD_compressCCtx")
	purego.RegisterLibFunc(&z.decompress, h, "ZSTD_decompressDCtx")
	purego.RegisterLibFunc(&create, h, "ZSTD_createCCtx")
	purego.RegisterLibFunc(&createDecoder, h, "ZSTD_createDCtx")
	z.ctx, z.dctx = create(), createDecoder()
	return &z, nil
}

// encode compresses src into dst, which must be large enough.
func (z *libzstd) encode(dst, src []byte, level int) []byte {
	n := z.compress(z.ctx, unsafe.Pointer(unsafe.SliceData(dst)), uintptr(cap(dst)), unsafe.Pointer(unsafe.SliceData(src)), uintptr(len(src)), int32(level))
	return dst[:n]
}

// decode decompresses src into dst and returns the number of bytes; an error is a number greater than any length.
func (z *libzstd) decode(dst, src []byte) uint64 {
	return uint64(z.decompress(z.dctx, unsafe.Pointer(unsafe.SliceData(dst)), uintptr(len(dst)), unsafe.Pointer(unsafe.SliceData(src)), uintptr(len(src))))
}
