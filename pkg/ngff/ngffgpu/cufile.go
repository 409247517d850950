package ngffgpu

import (
	"context"
	"errors"
	"fmt"
	"os"

	"strata/pkg/gpu"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// straight reports whether chunks that are not encoded go straight from the device to
// their files, or will once cuFile has been initialised.
func (w *Writer) straight() bool {
	if w.options.Files == nil {
		return false
	}
	if _, local := w.out.Array(0).Store().(*store.FolderStore); !local {
		return false
	}
	if !w.options.Files.Known() {
		return true
	}
	ok, _ := w.options.Files.Mode()
	return ok
}

// now returns the way of the next tile: while cuFile is not there, chunks go through the host.
func (w *Writer) now() way {
	if w.way == direct && !w.cuFile.Load() {
		if !w.options.Files.Known() {
			return raw
		}
		if ok, _ := w.options.Files.Mode(); !ok {
			return raw
		}
		w.cuFile.Store(true)
	}
	return w.way
}

// straightly returns a chunk that is written straight from the device.
func (w *Writer) straightly(ctx context.Context, chunk gpu.Span) zarr.Stored {
	return zarr.Stored{Size: chunk.Bytes(), Write: func(o store.PendingObject, off int64) error {
		p, ok := o.(store.PendingFile)
		if !ok {
			return fmt.Errorf("%s: its chunks are not files", w.out.Array(0).Location())
		}
		f, err := w.options.Files.Open(p.Path(), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Write(ctx, chunk, off), f.Close())
	}}
}
