package cufile

import (
	"os"
	"unsafe"

	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// configurationVariable names cuFile's configuration file, which is else the other.
const (
	configurationVariable = "CUFILE_ENV_PATH_JSON"
	configurationFile     = "/etc/cufile.json"
)

// Ordered returns nil if cuFile can probably move data in the order of a stream, and otherwise the reason.
func (d *Driver) Ordered() error {
	if !lib.ordered {
		return unavailable("cuFile's library is older than CUDA 12.2: it has no functions for streams")
	}
	path := os.Getenv(configurationVariable)
	if path == "" {
		path = configurationFile
	}
	if _, err := os.Stat(path); err != nil { // it is in there that they can be set up
		return unavailable("cuFile's functions for streams need its configuration file: %v", err)
	}
	return nil
}

// RegisterStream lets cuFile prepare a stream for transfers once. The stream must not end before
// [Driver.DeregisterStream].
func (d *Driver) RegisterStream(s *gpu.Stream) error {
	var err error
	s.Queue(func(stream uintptr) error {
		err = check("cuFileStreamRegister", lib.StreamRegister(stream, fixedStreams))
		return nil // transfers do without
	})
	return err
}

// DeregisterStream undoes RegisterStream. Nothing may be queued on the stream any more.
func (d *Driver) DeregisterStream(s *gpu.Stream) error {
	err := d.device.Call(func() error { return check("cuFileStreamDeregister", lib.StreamDeregister(s.Handle())) })
	if d.device.Lost() != nil {
		return nil
	}
	return err
}

// Transfer holds the arguments and the result of one read or write on a stream.
type Transfer struct {
	memory []byte // outside the Go heap: cuFile has its address until the transfer has run
	call   string
	most   int64
}

// NewTransfer returns a new transfer. The caller closes it.
func NewTransfer() (*Transfer, error) {
	b, err := mem.Alloc(int(unsafe.Sizeof(arguments{})))
	if err != nil {
		return nil, err
	}
	return &Transfer{memory: b}, nil
}

// Close frees memory whose address cuFile holds. Wait for the stream first.
func (t *Transfer) Close() { mem.Free(t.memory) }

func (t *Transfer) arguments() *arguments {
	return (*arguments)(unsafe.Pointer(unsafe.SliceData(t.memory)))
}

// Moved returns how many bytes were moved, like [Handle.Read]. Wait for the stream first.
func (t *Transfer) Moved() (int64, error) { return moved(t.call, t.arguments().done, t.most) }

// QueueRead queues [Handle.Read] on a stream. It must be called in [gpu.Stream.Queue], with the stream's
// handle. After an error nothing is queued.
func (h *Handle) QueueRead(t *Transfer, stream uintptr, b *Buffer, dst gpu.Span, off int64) error {
	return t.queue("cuFileReadAsync", lib.ReadAsync, h, stream, b, dst, off)
}

// QueueWrite queues [Handle.Write] on a stream, with the rules of QueueRead.
func (h *Handle) QueueWrite(t *Transfer, stream uintptr, b *Buffer, src gpu.Span, off int64) error {
	return t.queue("cuFileWriteAsync", lib.WriteAsync, h, stream, b, src, off)
}

func (t *Transfer) queue(call string, f func(h, device uintptr, n *uint64, off, deviceOff, done *int64, stream uintptr) failure, h *Handle, stream uintptr, b *Buffer, s gpu.Span, off int64) error {
	base, at, err := b.base(s)
	if err != nil {
		return err
	}
	a := t.arguments()
	*a = arguments{bytes: uint64(s.Bytes()), off: off, deviceOff: at}
	t.call, t.most = call, s.Bytes()
	return check(call, f(h.handle, base, &a.bytes, &a.off, &a.deviceOff, &a.done, stream))
}
