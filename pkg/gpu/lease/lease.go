// Package lease lets many processes of a node share its GPUs. Each process requests the device memory that it
// will hold, gets it on the device with the most memory left, and waits for its turn if it does not fit.
//
//	l, err := lease.Acquire(ctx, "", devices, 6<<30, lease.Options{Wait: show, Warn: warn})
//	if err != nil { … }
//	defer l.Release()
//	use(l.Device())
//
// Leases are files in a folder that all users of the node share ([DefaultDir]), one for each device that a
// process holds or waits for. The name holds all the information:
//
//	GPU-1f….lease.17.6442450944.k2j9x0   device, state (queue or lease), turn, bytes, random
//
// A file counts as long as its process holds an advisory lock (flock) on it. The kernel drops that lock when
// the process ends, however it ends, in whatever container it ran. A file without a lock is litter, which the
// next process of its owner removes. Process ids, times and the content of the files are only displayed.
// Nothing has to be written, so that a full disk does no harm.
//
// Each device serves requests in the order of arrival: a waiting request is not overtaken by a smaller one.
// Only a waiting process that does not run (stopped by a debugger or a batch system) is passed over until it
// continues.
//
// Leases are a convention of these programs: memory held by other programs does not count.
package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Device describes a GPU for leasing.
type Device struct {
	UUID   string // as the driver gives it: the same in every process and container
	Memory int64  // bytes in all
}

// perProcess estimates the device memory that a process needs besides its lease: its context, nvCOMP's local
// memory, and the 128 MiB of cuFile's buffers.
const perProcess = 600 << 20

// besides returns perProcess, or less on a small device.
func (d Device) besides() int64 { return min(perProcess, d.Memory/16) }

// lent returns the bytes of a device that can be lent, nineteen twentieths of its memory. They include what each
// process needs in addition to its lease.
func (d Device) lent() int64 { return d.Memory - d.Memory/20 }

// Grantable returns the maximum number of bytes of a device that one process can lease.
func (d Device) Grantable() int64 { return d.lent() - d.besides() }

// ErrTooLarge is wrapped by the error of a request that no device can ever grant.
var ErrTooLarge = errors.New("more device memory than there is")

// Options hold callbacks that report on a request; both may be nil.
type Options struct {
	Wait func(text string) // called when the request has to wait, and every 30 s while it does
	Warn func(text string) // called if the node's folder cannot be used, so that others do not see the lease
}

// Lease is memory of one device that this process may use until Release.
type Lease struct {
	device Device
	file   *file // nil: nothing is leased, see Options.Warn
	once   sync.Once
	err    error
}

// Device returns the leased device.
func (l *Lease) Device() Device { return l.device }

// Release returns the memory, as does the end of the process. A second Release does nothing.
func (l *Lease) Release() error {
	l.once.Do(func() {
		if l.file != nil {
			l.err = l.file.drop()
		}
	})
	return l.err
}

// Times of the protocol; tests shorten them.
var (
	againAfter   = 100 * time.Millisecond // who is next looks this often, who is behind more rarely
	againAtMost  = 2 * time.Second
	stalledAfter = 20 * time.Second // a waiting process that does not look for so long is passed over
	lockPatience = 30 * time.Second // for the lock of the folder, which is held for milliseconds
	tellEvery    = 30 * time.Second
)

// Acquire leases n bytes of one of the devices. dir is the folder of the node's leases, "" the default one.
// It waits for its turn until ctx ends and then returns its error; a request that no device can ever grant
// fails at once ([ErrTooLarge]). If the folder cannot be used, it calls Options.Warn with the reason. In place
// of the default folder, which any user can spoil, it then uses one of this user's own; failing that, it leases
// without coordination.
func Acquire(ctx context.Context, dir string, devices []Device, n int64, o Options) (*Lease, error) {
	fit, err := fitting(devices, n)
	if err != nil {
		return nil, err
	}
	for list := folders(dir); ; list = list[1:] {
		l, err := acquireIn(ctx, list[0], fit, n, o.Wait)
		if err == nil || ctx.Err() != nil {
			return l, err
		}
		why, next := "GPU memory is not shared out between processes", len(list) > 1 && Check(list[1]) == nil
		if next {
			why = "GPU memory is shared out between your own processes only"
		}
		if o.Warn != nil {
			o.Warn(fmt.Sprintf("%s: %v (STRATA_LEASE_DIR names another folder)", why, err))
		}
		if !next {
			return &Lease{device: fit[rand.IntN(len(fit))]}, nil
		}
	}
}

// acquireIn leases memory in one folder.
func acquireIn(ctx context.Context, dir string, fit []Device, n int64, tell func(string)) (*Lease, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &request{dir: dir, devices: fit, bytes: n, files: make([]*file, len(fit)), seen: map[string]sight{}}
	l, err := r.wait(ctx, tell)
	if err == nil {
		return l, nil
	}
	r.leave()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, err
}

// fitting returns the devices that could grant n bytes if nobody else held any.
func fitting(devices []Device, n int64) ([]Device, error) {
	if len(devices) == 0 {
		return nil, errors.New("a lease needs a device")
	}
	if n <= 0 {
		return nil, fmt.Errorf("a lease of %d bytes: want more than none", n)
	}
	var fit []Device
	largest := devices[0]
	for _, d := range devices {
		if !validUUID(d.UUID) {
			return nil, fmt.Errorf("%q is not the UUID of a device", d.UUID)
		}
		if d.Grantable() > largest.Grantable() {
			largest = d
		}
		if n <= d.Grantable() {
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%w: %s are requested, %s grants %s of its %s", ErrTooLarge,
			size(n), largest.UUID, size(max(largest.Grantable(), 0)), size(largest.Memory))
	}
	return fit, nil
}

// request is one process's request for a lease.
type request struct {
	dir     string
	devices []Device
	bytes   int64
	turn    int64
	files   []*file // one for each device
	seen    map[string]sight
}

// sight is when a file of the queue was first seen with a time of change.
type sight struct {
	changed int64
	at      time.Time
}

// wait queues up and waits for the turn.
func (r *request) wait(ctx context.Context, tell func(string)) (*Lease, error) {
	var told time.Time
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var l *Lease
		var ahead int
		var text string
		err := r.look(ctx, func(all []entry) (err error) {
			l, ahead, text, err = r.admit(all)
			return err
		})
		if l != nil || err != nil {
			return l, err
		}
		if tell != nil && (told.IsZero() || time.Since(told) >= tellEvery) {
			tell(text)
			told = time.Now()
		}
		if err := sleep(ctx, min(againAtMost, againAfter*time.Duration(1+ahead))); err != nil {
			return nil, err
		}
	}
}

// look calls f with all holders and waiters while it holds the folder's lock.
func (r *request) look(ctx context.Context, f func([]entry) error) error {
	return locked(ctx, r.dir, func(d *folder) error {
		all, err := d.scan(true)
		if err != nil {
			return err
		}
		if err := r.enter(d, all); err != nil {
			return err
		}
		return f(all)
	})
}

// enter creates the request's files in the queue that are missing, and touches the others to show that the process is
// alive.
func (r *request) enter(d *folder, all []entry) error {
	there := map[string]bool{}
	last := int64(0)
	for _, e := range all {
		there[e.file] = true
		last = max(last, e.turn)
	}
	if r.turn == 0 {
		r.turn = min(last+1, maxTurn)
	}
	for i, device := range r.devices {
		if f := r.files[i]; f != nil {
			if there[f.name] {
				f.touch()
				continue
			}
			_ = f.drop() // somebody cleaned the folder
			r.files[i] = nil
		}
		f, err := d.create(entry{uuid: device.UUID, waiting: true, turn: r.turn, bytes: r.bytes})
		if err != nil {
			return err
		}
		r.files[i] = f
	}
	return nil
}

// admit takes the device with the most memory left among those on which the request is next and fits, or
// returns nil. ahead is the number of requests before it on the device with the fewest.
func (r *request) admit(all []entry) (l *Lease, ahead int, text string, err error) {
	best, most, ahead := -1, int64(-1), math.MaxInt
	free := make([]string, len(r.devices))
	for i, d := range r.devices {
		left, before := d.Grantable(), 0
		for _, e := range all {
			switch {
			case e.uuid != d.UUID || e.file == r.files[i].name:
			case !e.waiting:
				left -= min(e.bytes, max(left, 0)) // what a file says may be any number
				left -= min(d.besides(), max(left, 0))
			case e.turn < r.turn && !r.stalled(e):
				before++
			}
		}
		ahead = min(ahead, before)
		free[i] = size(left) + " free on " + d.UUID
		if before == 0 && r.bytes <= left && left > most {
			best, most = i, left
		}
	}
	if best < 0 {
		text = fmt.Sprintf("waiting for GPU memory: %s needed, %s", size(r.bytes), strings.Join(free, ", "))
		if ahead > 0 {
			text += fmt.Sprintf("; %d waiting before", ahead)
		}
		return nil, ahead, text, nil
	}
	f := r.files[best]
	if err := f.rename(entry{uuid: r.devices[best].UUID, turn: r.turn, bytes: r.bytes}); err != nil {
		return nil, 0, "", err
	}
	r.files[best] = nil
	r.leave()
	return &Lease{device: r.devices[best], file: f}, 0, "", nil
}

// stalled reports whether a waiting process has not looked for long, by this process's clock: file times are
// compared only with themselves.
func (r *request) stalled(e entry) bool {
	s, ok := r.seen[e.file]
	if !ok || s.changed != e.changed {
		r.seen[e.file] = sight{e.changed, time.Now()}
		return false
	}
	return time.Since(s.at) > stalledAfter
}

// leave takes this request's files out of the queue.
func (r *request) leave() {
	for i, f := range r.files {
		if f != nil {
			_ = f.drop() // what stays is litter without a lock
			r.files[i] = nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// size formats a number of bytes.
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
