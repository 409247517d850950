package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The parts of io_uring's interface (linux/io_uring.h) that are used.
type (
	sqOffsets struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cqOffsets struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
	uringParams struct {
		sqEntries, cqEntries, flags, _, _, features, _ uint32
		_                                              [3]uint32
		sq                                             sqOffsets
		cq                                             cqOffsets
	}
	submission struct {
		opcode, flags   uint8
		ioprio          uint16
		fd              int32
		off, addr       uint64
		length, rwFlags uint32
		userData        uint64
		bufIndex, _     uint16
		_               int32
		_               [2]uint64
	}
	completion struct {
		userData uint64
		result   int32
		_        uint32
	}
)

const (
	opRead         = 22
	enterGetEvents = 1
	offSubmissions = 0
	offCompletions = 0x8000000
	offEntries     = 0x10000000
	depth          = 8
)

// uring reads the file with a queue of its own for each thread, depth reads at a time in
// each.
func (t *task) uring() error {
	flags := unix.O_RDONLY
	if t.op == "uring-direct" {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(t.file, flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var next atomic.Int64
	failed := make(chan error, t.threads)
	for range t.threads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			failed <- t.ring(int32(f.Fd()), &next)
		}()
	}
	for range t.threads {
		if e := <-failed; e != nil {
			err = e
		}
	}
	return err
}

// ring reads pieces until there is none left.
func (t *task) ring(fd int32, next *atomic.Int64) error {
	var p uringParams
	r, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, depth, uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return fmt.Errorf("io_uring: %w", e)
	}
	defer unix.Close(int(r))
	sq, err := unix.Mmap(int(r), offSubmissions, int(p.sq.array+p.sqEntries*4), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(sq)
	cq, err := unix.Mmap(int(r), offCompletions, int(p.cq.cqes)+int(p.cqEntries)*int(unsafe.Sizeof(completion{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(cq)
	entries, err := unix.Mmap(int(r), offEntries, int(p.sqEntries)*int(unsafe.Sizeof(submission{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(entries)
	word := func(b []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[at])) }
	sqTail, sqMask, cqHead, cqTail, cqMask := word(sq, p.sq.tail), *word(sq, p.sq.mask), word(cq, p.cq.head), word(cq, p.cq.tail), *word(cq, p.cq.mask)
	slots := unsafe.Slice((*submission)(unsafe.Pointer(&entries[0])), p.sqEntries)
	done := unsafe.Slice((*completion)(unsafe.Pointer(&cq[p.cq.cqes])), p.cqEntries)
	array := unsafe.Slice(word(sq, p.sq.array), p.sqEntries)
	put := func(at, end int64) {
		tail := *sqTail
		i := tail & sqMask
		slots[i] = submission{opcode: opRead, fd: fd, off: uint64(at), addr: uint64(uintptr(unsafe.Pointer(&t.memory[at]))), length: uint32(end - at), userData: uint64(at)}
		array[i] = i
		atomic.StoreUint32(sqTail, tail+1)
	}
	end := func(at int64) int64 { return min((at/int64(t.piece)+1)*int64(t.piece), int64(t.bytes)) }
	for waiting := 0; ; {
		queued := 0
		for ; waiting+queued < depth; queued++ {
			at := next.Add(int64(t.piece)) - int64(t.piece)
			if at >= int64(t.bytes) {
				break
			}
			put(at, end(at))
		}
		if waiting += queued; waiting == 0 {
			return nil
		}
		for { // what is short is asked for again
			if _, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, r, uintptr(queued), 1, enterGetEvents, 0, 0); e != 0 && e != unix.EINTR {
				return fmt.Errorf("io_uring: %w", e)
			}
			queued = 0
			for head := *cqHead; head != atomic.LoadUint32(cqTail); head++ {
				c := done[head&cqMask]
				atomic.StoreUint32(cqHead, head+1)
				at := int64(c.userData)
				switch {
				case c.result <= 0:
					return fmt.Errorf("io_uring: read at byte %d: %w", at, unix.Errno(-c.result))
				case at+int64(c.result) < end(at):
					put(at+int64(c.result), end(at))
					queued++
				default:
					waiting--
				}
			}
			if queued == 0 {
				break
			}
		}
	}
}
