package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is a process that holds device memory, or waits for it. One that accepts
// several devices waits once for each.
type Entry struct {
	UUID    string // of the device
	Bytes   int64
	Waiting bool
	Holder  Holder
}

// Holder describes the process of an entry, for display only. It is empty if the process left no readable
// description.
type Holder struct {
	PID       int       `json:"pid"` // in its container
	Start     string    `json:"start"`
	Namespace string    `json:"namespace"`
	Host      string    `json:"host"`
	User      string    `json:"user"`
	Tool      string    `json:"tool"`
	Since     time.Time `json:"since"`
}

// List returns the holders of and the waiters for memory of the node's GPUs, by device and turn, including
// those in this user's own folder, which stands in for an unusable default one. It changes nothing; a missing
// folder has no entries.
func List(dir string) (list []Entry, err error) {
	for i, name := range folders(dir) {
		more, e := listFolder(name)
		if list = append(list, more...); i == 0 {
			err = e
		}
	}
	return list, err
}

// listFolder lists one folder.
func listFolder(path string) ([]Entry, error) {
	d, err := openFolder(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	// With the folder's lock nothing is seen in between; a list without it is better
	// than none.
	if fd, err := d.openLock(false); err == nil {
		defer unix.Close(fd)
		for range 100 {
			if !errors.Is(flock(fd, unix.LOCK_SH), unix.EWOULDBLOCK) {
				break
			}
			_ = sleep(context.Background(), 10*time.Millisecond)
		}
	}
	all, err := d.scan(false)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.uuid, b.uuid), rank(a)-rank(b), cmp.Compare(a.turn, b.turn))
	})
	list := make([]Entry, len(all))
	for i, e := range all {
		list[i] = Entry{e.uuid, e.bytes, e.waiting, d.holder(e.file)}
	}
	return list, nil
}

func rank(e entry) int {
	if e.waiting {
		return 1
	}
	return 0
}

// self describes this process.
func self() Holder {
	h := Holder{PID: os.Getpid(), Namespace: namespace(), Tool: filepath.Base(os.Args[0]), Since: time.Now().UTC().Truncate(time.Second)}
	h.Start = startOf(h.PID)
	h.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		h.User = u.Username
	}
	return h
}

// maxDescription is the maximum size of a description, in bytes.
const maxDescription = 4096

// holder reads the description that a process wrote into its file. It ignores a claim to be a process of this
// container that does not run here.
func (d *folder) holder(name string) Holder {
	fd, err := d.open(name, unix.O_RDONLY, 0)
	if err != nil {
		return Holder{}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxDescription))
	var h Holder
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID < 1 {
		return Holder{}
	}
	for _, s := range []*string{&h.Host, &h.User, &h.Tool} {
		*s = strings.Map(func(r rune) rune {
			if strconv.IsPrint(r) {
				return r
			}
			return -1
		}, *s)
	}
	if h.Namespace == namespace() && h.Namespace != "" {
		start := startOf(h.PID)
		if errors.Is(unix.Kill(h.PID, 0), unix.ESRCH) || start != "" && start != h.Start {
			return Holder{}
		}
	}
	return h
}

// startOf returns when a process started, in clock ticks since boot: field 22 of /proc/PID/stat, whose second
// field in parentheses may hold anything. It returns "" if that cannot be read.
func startOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// namespace returns the process id namespace, or "" if unknown.
func namespace() string {
	link, _ := os.Readlink("/proc/self/ns/pid")
	return link
}
