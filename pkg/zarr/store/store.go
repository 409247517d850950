// Package store reads and writes the objects of a Zarr hierarchy: a chunk, a
// shard or a metadata document is one object, and a slash-separated key names it.
//
// [OpenURL] is what most readers need: it takes what a user types (a folder, a
// zip file, an http(s) address) and returns a store and the key of the node in
// it. Programs that write start from [Folder].
//
//	store    read             write  list
//	Folder   yes              yes    yes
//	Memory   yes              yes    yes
//	Zip      yes              no     yes
//	HTTP     range requests   no     no (HTTP has no such request)
//	S3       range requests   yes    yes
//
// Another kind of store implements [Store] and, when it can write,
// [Writer]; nothing else in this module knows which one it talks to.
package store

import (
	"context"
	"errors"
)

// Errors that callers may test for with [errors.Is]. An absent object is
// [io/fs.ErrNotExist]; no right to read or write is [io/fs.ErrPermission].
var (
	// ErrKey is a key that breaks the rules of [ValidKey]. It is permanent.
	ErrKey = errors.New("invalid key")
	// ErrTooLarge is an object larger than the limit that the caller set. It
	// is found before memory is allocated for the object, and permanent.
	ErrTooLarge = errors.New("object is larger than allowed")
	// ErrChanged is an object that another program changed while it was read.
	// What was read before may mix old and new content.
	ErrChanged = errors.New("changed while being read")
	// ErrSize is an object that has another size than was expected; see [Expecter].
	ErrSize = errors.New("another size than expected")
	// ErrNoFile is something else in the place of an object's file: a folder, a pipe, or a
	// file where a folder should be.
	ErrNoFile = errors.New("not a regular file")
	// ErrUnavailable is a server that cannot be reached or does not answer as it
	// should, after several tries. Later it may.
	ErrUnavailable = errors.New("not available now")
)

// Store is the read side of a set of objects.
//
// All methods are safe for concurrent use and return early, with the context's
// error, when ctx ends. Keys obey [ValidKey]; every method returns [ErrKey] for
// one that does not. A prefix or a location may also be "", the root. Errors
// name the object's [Store.Location].
//
// What a store returns reflects the objects at the time of the call; nothing
// is cached unless the store says so.
type Store interface {
	// Get appends the whole object key to dst[:0], growing it when it is too
	// small, and returns the result. On an error it returns nil, and what dst
	// held is undefined.
	//
	// An absent object is fs.ErrNotExist. A key that names a folder of the
	// store, or that goes through an object as if that were a folder, is
	// another error: a store in which a chunk's name is taken by something
	// else is damaged, and reading fill values in its place would hide it.
	// (HTTP cannot tell: there it is what the server says.)
	//
	// An object of more than limit bytes is ErrTooLarge; limit < 0 allows any.
	Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error)

	// Open prepares reads from parts of the object key. Its errors are those
	// of Get. The caller closes the Object.
	Open(ctx context.Context, key string) (Object, error)

	// List returns the immediate children of prefix, sorted by name. A prefix
	// under which there is nothing is fs.ErrNotExist, the name of an object
	// another error. Objects still being written are not listed. A store that
	// cannot list returns errors.ErrUnsupported.
	List(ctx context.Context, prefix string) ([]Entry, error)

	// Location is key in the words of whoever named the store: a path or URL
	// for messages. It does no I/O and does not fail.
	Location(key string) string

	// Close gives up what the store holds. Objects are closed before.
	Close() error
}

// Entry is one child in a listing: an object, or a folder of more objects.
type Entry struct {
	Name string // last segment of the key
	Dir  bool   // other keys go through this one
	Size int64  // bytes of the object; 0 for a folder
}

// Object is an object open for reading. ReadAt may be called from many
// goroutines at once.
type Object interface {
	// ReadAt fills p from the object's bytes at offset off and returns the
	// number of bytes read; fewer than len(p) come with an error, which is
	// io.EOF when the object's end (Size) lies in the requested range.
	// Content that is seen to differ from what was opened is ErrChanged:
	// Folder sees a file that became shorter, HTTP a change of the validators
	// (ETag, Last-Modified) or of the size.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)

	// Size is the object's size in bytes when it was opened.
	Size() int64

	// Close gives up the object. Reads in flight finish; later ones are
	// fs.ErrClosed. A second Close does nothing.
	Close() error
}

// Distant is a store whose answers take long, whatever they carry: it pays to have
// several requests on their way.
type Distant interface {
	Store
	// Requests is how many; 0: it is not distant after all.
	Requests() int
}

// Decoder is a store that shows a file of another format as a hierarchy, of which it decodes the chunks:
// those of arrays whose only codec is "strata.store". What Get returns of them is theirs to know.
type Decoder interface {
	Store
	// Decode fills dst with all elements of the chunk that key names, in C order and native byte
	// order; src is what Get returned for it. Many goroutines may call it at once. Its errors need not name the chunk.
	Decode(ctx context.Context, key string, dst, src []byte) error
}

// Expecter is a store that opens an object without looking at it.
type Expecter interface {
	Store
	// Expect is Open of an object that has size bytes if it is there. It asks
	// nobody: that there is no such object shows at the first read, which is
	// fs.ErrNotExist then, and so does another size, which is ErrSize.
	Expect(ctx context.Context, key string, size int64) (Object, error)
}

// RowReader is an Object that can leave room between the rows that it reads.
type RowReader interface {
	Object
	// ReadRows is ReadAt of rows of length bytes that follow each other in the
	// object, the starts of which lie pitch bytes apart in dst. It returns the
	// number of bytes read.
	ReadRows(ctx context.Context, dst []byte, rows, length, pitch int, off int64) (int, error)
}

// ReadRows reads rows of a part of o that begins at byte from and has size bytes. It does so by o's own ReadRows where
// all of them lie in the part and o is a [RowReader], else row by row from part, which is that part.
func ReadRows(ctx context.Context, o, part Object, from, size int64, dst []byte, rows, length, pitch int, off int64) (int, error) {
	if r, ok := o.(RowReader); ok && off >= 0 && int64(rows)*int64(length) <= size-off {
		if n, err := r.ReadRows(ctx, dst, rows, length, pitch, from+off); err == nil {
			return n, nil
		}
	}
	return rowByRow(ctx, part, dst, rows, length, pitch, off) // says what is wrong in terms of the part
}

// rowByRow is ReadRows by ReadAt.
func rowByRow(ctx context.Context, o Object, dst []byte, rows, length, pitch int, off int64) (done int, err error) {
	for ; rows > 0; rows-- {
		n, err := o.ReadAt(ctx, dst[:length], off)
		if done += n; n < length {
			return done, err
		}
		off += int64(n)
		dst = dst[min(pitch, len(dst)):]
	}
	return done, nil
}

// FileObject is an Object that is a contiguous part of a local file, as those of
// Folder and the stored members of Zip are: for callers with their own way to
// read (O_DIRECT, mmap, GPUDirect).
type FileObject interface {
	Object
	// File returns the file's descriptor, valid until Close, and the offset
	// of the object's first byte in the file.
	File() (fd uintptr, off int64)
}

// NamedFile is a FileObject whose file is known by its path, for those who open it anew.
type NamedFile interface {
	FileObject
	// Path is the file's path, and the offset of the object's first byte in it.
	Path() (path string, off int64)
}

// Writer is a store that can be changed.
//
// Concurrent writes of one key leave the content of one of them, whole; which
// one is not specified. An interrupted write leaves the object as it was.
type Writer interface {
	Store

	// Put stores parts, one after the other, as the object key, and replaces
	// the object if there is one. A reader sees the old object or the new one,
	// never a part. It is idempotent. Folders that key goes through come into
	// being. parts are not kept.
	Put(ctx context.Context, key string, parts ...[]byte) error

	// Create begins an object that is written piece by piece and appears under
	// key only at its Commit. The caller ends it with Commit or Abort.
	Create(ctx context.Context, key string) (PendingObject, error)

	// Delete removes the object key. It is idempotent: no such object is
	// success. A folder is an error.
	Delete(ctx context.Context, key string) error
}

// PendingObject is an object under construction.
type PendingObject interface {
	// WriteAt writes p at offset off. Calls may come in any order and from
	// many goroutines; bytes that no call wrote are zero. Overlapping calls
	// leave either's bytes.
	WriteAt(p []byte, off int64) (int, error)

	// ReadAt reads back what calls of WriteAt that have returned wrote, as
	// [io.ReaderAt] does.
	ReadAt(p []byte, off int64) (int, error)

	// Commit puts the object in its place, as Put would. After an error the
	// object is as it was before Create, and nothing is left behind.
	Commit() error

	// Abort gives the object up and leaves nothing behind. After Commit, and
	// a second time, it does nothing: it may be deferred.
	Abort() error
}

// PendingFile is a PendingObject that is a local file, as those of Folder are: for
// callers with their own way to write (GPUDirect).
type PendingFile interface {
	PendingObject
	// Path is where the file lies until it is ended. Who writes there opens it
	// and closes it before Commit.
	Path() string
}
