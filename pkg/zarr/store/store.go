// Package store reads and writes the objects of a Zarr hierarchy. A chunk, a shard or a metadata document is
// one object, named by a slash-separated key.
//
// [OpenURL] is all that most readers need: it takes what a user types (a folder, a zip file, a web or S3
// address) and returns a store and the key of the node in it. Programs that write begin with [Folder].
//
//	store    read             write  list
//	Folder   yes              yes    yes
//	Memory   yes              yes    yes
//	Zip      yes              no     yes
//	HTTP     range requests   no     no (HTTP has no such request)
//	S3       range requests   yes    yes
//
// Other kinds of stores implement [Store] and, if they can write, [Writer]; the rest of this module works
// with any store.
package store

import (
	"context"
	"errors"
)

// Errors for [errors.Is]. An absent object is [io/fs.ErrNotExist]; missing permission is
// [io/fs.ErrPermission].
var (
	// ErrKey reports a key that violates the rules of [ValidKey]. It is permanent.
	ErrKey = errors.New("invalid key")
	// ErrTooLarge reports an object larger than the caller's limit, before memory is allocated for it. It is
	// permanent.
	ErrTooLarge = errors.New("object is larger than allowed")
	// ErrChanged reports an object that another program changed while it was read. Earlier reads may mix old
	// and new content.
	ErrChanged = errors.New("changed while being read")
	// ErrSize reports an object whose size differs from the expected one; see [Expecter].
	ErrSize = errors.New("another size than expected")
	// ErrNoFile reports something other than a regular file in an object's place: a folder, a pipe, or a file
	// where a folder should be.
	ErrNoFile = errors.New("not a regular file")
	// ErrUnavailable reports a server that, after several tries, cannot be reached or does not answer
	// properly. A later attempt may succeed.
	ErrUnavailable = errors.New("not available now")
)

// Store reads a set of objects.
//
// All methods are safe for concurrent use and return early, with the context's error, when ctx ends. Keys
// obey [ValidKey]; every method returns [ErrKey] for others. A prefix or a location may also be "", the root.
// Errors name the object's [Store.Location].
//
// Results reflect the objects at the time of the call; a store caches only what it documents.
type Store interface {
	// Get appends the whole object key to dst[:0], growing it if necessary, and returns the result. On an
	// error it returns nil and leaves the content of dst undefined.
	//
	// An absent object is fs.ErrNotExist. A key that names a folder, that uses an object as a folder, or that is
	// a symbolic link to nothing, is another error: such a store is damaged, and reading fill values would hide
	// that. (HTTP cannot tell; there the server decides.)
	//
	// An object of more than limit bytes is ErrTooLarge; limit < 0 allows any size.
	Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error)

	// Open prepares reads of parts of the object key. It returns the errors of Get. The caller closes the
	// Object.
	Open(ctx context.Context, key string) (Object, error)

	// List returns the immediate children of prefix, sorted by name. A prefix with nothing below it is
	// fs.ErrNotExist; the name of an object is another error. Objects still being written are not listed. A
	// store that cannot list returns errors.ErrUnsupported.
	List(ctx context.Context, prefix string) ([]Entry, error)

	// Location returns the path or URL of key as the user named the store, for messages. It does no I/O and
	// does not fail.
	Location(key string) string

	// Close releases the store's resources. The caller closes all Objects first.
	Close() error
}

// Entry is one child in a listing: an object or a folder.
type Entry struct {
	Name string // last segment of the key
	Dir  bool   // other keys have this one as prefix
	Size int64  // bytes of the object; 0 for a folder
	Lost bool   // a symbolic link that leads to nothing: nobody knows whether to an object or to a folder
}

// Object reads from an open object. ReadAt may be called concurrently.
type Object interface {
	// ReadAt fills p from offset off and returns the number of bytes read. Fewer than len(p) bytes come with
	// an error: io.EOF if the object's end (Size) lies in the requested range. If the content has visibly
	// changed since Open, the error is ErrChanged: Folder notices a file that became shorter, HTTP a change
	// of the validators (ETag, Last-Modified) or of the size.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)

	// Size returns the size in bytes that the object had when it was opened.
	Size() int64

	// Close releases the object. Reads in flight finish; later ones return fs.ErrClosed. A second Close does
	// nothing.
	Close() error
}

// Distant is implemented by stores with a high latency per request, for which several requests should be in
// flight.
type Distant interface {
	Store
	// Requests returns how many requests to have in flight; 0 means that the store is not distant after all.
	Requests() int
}

// Decoder is implemented by stores that show a file of another format as a hierarchy and decode its chunks:
// those of arrays whose only codec is "strata.store". Only the store can interpret what Get returns for them.
type Decoder interface {
	Store
	// Decode fills dst with all elements of the chunk key, in C order and native byte order, from src, the
	// result of Get. It may be called concurrently. Its errors need not name the chunk.
	Decode(ctx context.Context, key string, dst, src []byte) error
}

// Expecter is implemented by stores that can open an object without a request.
type Expecter interface {
	Store
	// Expect works like Open for an object that is expected to have size bytes, without a request. The first
	// read returns fs.ErrNotExist if there is no such object, or ErrSize if it has another size.
	Expect(ctx context.Context, key string, size int64) (Object, error)
}

// RowReader is implemented by Objects that can read rows into a buffer with gaps between them.
type RowReader interface {
	Object
	// ReadRows reads rows that are adjacent in the object from off on. It returns the number of bytes read.
	ReadRows(ctx context.Context, dst []byte, rows Rows, off int64) (int, error)
}

// Rows describes rows of bytes in memory: Count rows of Length bytes each, the first bytes of neighbours Pitch bytes
// apart.
type Rows struct{ Count, Length, Pitch int }

// bytes returns the size of all rows.
func (r Rows) bytes() int64 { return int64(r.Count) * int64(r.Length) }

// A Range is so many bytes of an object from an offset on.
type Range struct{ Offset, Size int64 }

// ReadRows reads rows from part, which is a range of o. It uses o's own ReadRows if o is a [RowReader] and all rows lie
// in the part, and otherwise reads row by row from part.
func ReadRows(ctx context.Context, o, part Object, where Range, dst []byte, rows Rows, off int64) (int, error) {
	if r, ok := o.(RowReader); ok && off >= 0 && rows.bytes() <= where.Size-off {
		if n, err := r.ReadRows(ctx, dst, rows, where.Offset+off); err == nil {
			return n, nil
		}
	}
	return rowByRow(ctx, part, dst, rows, off) // says what is wrong in terms of the part
}

// rowByRow reads rows by ReadAt.
func rowByRow(ctx context.Context, o Object, dst []byte, rows Rows, off int64) (done int, err error) {
	for range rows.Count {
		n, err := o.ReadAt(ctx, dst[:rows.Length], off)
		if done += n; n < rows.Length {
			return done, err
		}
		off += int64(n)
		dst = dst[min(rows.Pitch, len(dst)):]
	}
	return done, nil
}

// FileObject is implemented by Objects that are a contiguous part of a local file (those of Folder, and
// stored members of Zip), for callers with their own way to read (O_DIRECT, mmap, GPUDirect).
type FileObject interface {
	Object
	// File returns the file's descriptor, valid until Close, and the offset of the object's first byte in the
	// file.
	File() (fd uintptr, off int64)
}

// NamedFile is implemented by FileObjects that know the path of their file, for callers that open it again.
type NamedFile interface {
	FileObject
	// Path returns the file's path and the offset of the object's first byte in it.
	Path() (path string, off int64)
}

// Writer is implemented by stores that can be changed.
//
// After concurrent writes of one key the object is one of them, whole; which one is not specified. An
// interrupted write leaves the object as it was.
type Writer interface {
	Store

	// Put stores the concatenation of parts as the object key and replaces any existing object. Readers see
	// the old object or the new one, never a mixture. It creates missing folders, is idempotent and does not
	// keep parts.
	Put(ctx context.Context, key string, parts ...[]byte) error

	// Create begins an object that is written piece by piece and appears under key at Commit. The caller must
	// call Commit or Abort.
	Create(ctx context.Context, key string) (PendingObject, error)

	// Delete removes the object key. It is idempotent: an absent object is no error. A folder is an error.
	Delete(ctx context.Context, key string) error
}

// PendingObject writes an object under construction.
type PendingObject interface {
	// WriteAt writes p at offset off. Calls may be concurrent and in any order; bytes that no call wrote are
	// zero. Where calls overlap, the bytes of either remain.
	WriteAt(p []byte, off int64) (int, error)

	// ReadAt reads back the bytes of completed WriteAt calls, as an [io.ReaderAt].
	ReadAt(p []byte, off int64) (int, error)

	// Commit moves the object to its place, as Put would. After an error the object is as it was before
	// Create, and nothing is left behind.
	Commit() error

	// Abort discards the object and leaves nothing behind. After Commit or Abort it does nothing, so that it
	// can be deferred.
	Abort() error
}

// PendingFile is implemented by PendingObjects that are a local file, as those of Folder, for callers with
// their own way to write (GPUDirect).
type PendingFile interface {
	PendingObject
	// Path returns the path of the file until Commit or Abort. A caller that opens it closes it before
	// Commit.
	Path() string
}
