//go:build !nocuda

package filelayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/settings"
	"strata/tests/gputest"
)

// orderedSettings let little pieces go on streams.
func orderedSettings() settings.Settings {
	s := settings.Default()
	s.Threads, s.TaskSize, s.Threshold, s.Bounce = 2, 8192, 1, 32<<10
	return s
}

// configured gives cuFile the configuration file without which it does nothing on streams.
func configured(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cufile.json")
	if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is queued on a stream happens in its order: a write has what was made before it, a
// read what was written before it, a copy what was read before it, and nothing happens at once.
func TestOrdered(t *testing.T) {
	d := device(t)
	for name, configuration := range map[string]string{"straight": configured(t), "bounced": filepath.Join(t.TempDir(), "none")} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CUFILE_ENV_PATH_JSON", configuration)
			p := pool(t, d, orderedSettings())
			ok, reason := p.Ordered()
			switch {
			case !doubled(d):
				t.Log(ok, reason)
			case name == "straight" && (!ok || reason != "nvidia-fs 2.20"),
				name == "bounced" && (ok || !strings.HasPrefix(reason, "cuFile's functions for streams need its configuration file: ")):
				t.Fatal(ok, reason)
			}
			const n = 150001
			want := random(n)
			s := gputest.Stream(t, d)
			a, b := onDevice(t, d, n), onDevice(t, d, n)
			defer a.Release()
			defer b.Release()
			up, err := d.Host(n)
			if err != nil {
				t.Fatal(err)
			}
			defer up.Release()
			down, err := d.Host(n)
			if err != nil {
				t.Fatal(err)
			}
			defer down.Release()
			path := filepath.Join(t.TempDir(), "data")
			f := openFile(t, p, path, os.O_RDWR|os.O_CREATE)
			for round := range 2 { // memory that is used again is registered
				if !gputest.HoldsBack(d) { // it begins at once
					copy(up.B, want)
				}
				s.Zero(a.Span)
				s.Upload(a.Span, up.B)
				f.QueueWrite(ctx, s, a.Span, 100)
				f.QueueRead(ctx, s, b.Span, 100)
				s.Download(down.B, b.Span)
				copy(up.B, want) // the upload has not run, and so nothing has
				if info, err := os.Stat(path); err != nil || round == 0 && info.Size() != 0 && gputest.HoldsBack(d) {
					t.Fatal("written at once: ", err)
				}
				if err := f.Close(); err == nil || !strings.HasSuffix(err.Error(), path+": a stream that reads or writes it has not been waited for") {
					t.Fatal(err)
				}
				if err := s.Wait(); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(down.B, want) {
					t.Error("other bytes come back")
				}
				clear(down.B)
			}
			got, err := os.ReadFile(path)
			if err != nil || len(got) != 100+n || !bytes.Equal(got[100:], want) {
				t.Error("the file has other bytes: ", len(got), err)
			}
			st := p.Stats()
			if st.ReadStraight+st.ReadBounced != 2*n || st.WrittenStraight+st.WrittenBounced != 2*n || st.Fallbacks != 0 || st.Reads != 2 || st.Writes != 2 || st.Failed != 0 {
				t.Errorf("%+v", st)
			}
			if doubled(d) && (name == "straight") != (st.ReadStraight == 2*n && st.WrittenStraight == 2*35*4096) {
				t.Errorf("%s: %+v", name, st)
			}
			if doubled(d) && name == "straight" && p.Registered() == 0 {
				t.Error("nothing is registered")
			}
		})
	}
}

// What goes wrong on a stream is the error of its Wait, with the file and the place; the
// next is in order.
func TestOrderedErrors(t *testing.T) {
	t.Setenv("CUFILE_ENV_PATH_JSON", os.DevNull)
	d := device(t)
	if os.Getenv("STRATA_TEST_APART") == "" && doubled(d) {
		apart(t, "TestOrderedErrors", "CUEMU_CUFILE=compat") // as on a machine without nvidia-fs, where pieces come through the host
	}
	p := pool(t, d, orderedSettings())
	path := file(t, random(50000))
	f := openFile(t, p, path, os.O_RDONLY)
	s := gputest.Stream(t, d)
	b := onDevice(t, d, 60000)
	defer b.Release()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	later, stop := context.WithCancel(ctx)
	closed, err := p.Open(path, os.O_RDONLY, 0)
	if err == nil {
		err = closed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	s2 := settings.Default()
	s2.Threads, s2.Compat = 1, settings.On
	byHost := openFile(t, pool(t, d, s2), path, os.O_RDONLY)
	cases := map[string]struct {
		queue func()
		want  string
		is    error
	}{
		"end":            {func() { f.QueueRead(ctx, s, b.Span, 0) }, "read " + path + " at byte 50000: the file ends, 10000 bytes are missing: unexpected EOF", io.ErrUnexpectedEOF},
		"end, by host":   {func() { byHost.QueueRead(ctx, s, b.Span, 0) }, "read " + path + " at byte 50000: the file ends, 10000 bytes are missing: unexpected EOF", io.ErrUnexpectedEOF},
		"negative":       {func() { f.QueueRead(ctx, s, b.Span, -1) }, "read " + path + " at byte -1: the position is negative", nil},
		"cancelled":      {func() { f.QueueRead(ended, s, b.Span, 0) }, "read " + path + " at byte 0: context canceled", context.Canceled},
		"cancelled soon": {func() { byHost.QueueRead(later, s, b.From(0, 50000), 0); stop() }, "read " + path + " at byte 0: context canceled", context.Canceled},
		"read only":      {func() { f.QueueWrite(ctx, s, b.From(0, 100), 0) }, "write " + path + " at byte 0: bad file descriptor", nil},
		"closed":         {func() { closed.QueueRead(ctx, s, b.Span, 0) }, "read " + path + " at byte 0: file already closed", os.ErrClosed},
		"without device": {func() { openFile(t, pool(t, nil, settings.Default()), path, os.O_RDONLY).QueueRead(ctx, s, b.Span, 0) }, "read " + path + " at byte 0: the stream is not of the pool's device", nil},
	}
	if !gputest.HoldsBack(d) { // the read may be over
		delete(cases, "cancelled soon")
	}
	for name, c := range cases {
		c.queue()
		err := s.Wait()
		if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
		f.QueueRead(ctx, s, b.From(0, 50000), 0)
		if err := s.Wait(); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	f.QueueRead(ctx, s, gpu.Span{}, 0) // nothing
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if st := f.Stats(); st.Reads != int64(3+len(cases)+1) || st.Writes != 1 || st.Failed != 4 { // of this file: end, negative, cancelled, read only
		t.Errorf("%+v", st)
	}
}

// cuFile's failures on streams: what it refuses goes by way of the host, what it does not finish
// is an error, and from then on the host does it.
func TestOrderedFaults(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") != "" {
		d := device(t)
		list := orderedSettings()
		if os.Getenv("STRATA_COMPAT_MODE") == "off" {
			list.Compat = settings.Off
		}
		p := pool(t, d, list)
		want := random(50000)
		path := file(t, want)
		f := openFile(t, p, path, os.O_RDWR)
		s, err := d.Stream()
		if err != nil {
			t.Fatal(err)
		}
		b := onDevice(t, d, len(want))
		result := ""
		for range 2 {
			f.QueueRead(ctx, s, b.Span, 0)
			f.QueueWrite(ctx, s, b.Span, 0)
			if err := s.Wait(); err != nil {
				result += strings.ReplaceAll(err.Error(), path, "FILE") + "; "
			} else {
				result += "right; "
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || strings.HasPrefix(result, "right; ") && !bytes.Equal(got, want) {
			t.Error("other bytes: ", err)
		}
		st := p.Stats()
		fmt.Printf("RESULT %s%d fallbacks\n", result, st.Fallbacks)
		b.Release()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	for env, want := range map[string]string{
		"CUEMU_FAIL=cuFileReadAsync:1:5038":                                "right; right; 1 fallbacks",
		"CUEMU_FAIL=cuFileWriteAsync:2:5010":                               "right; right; 1 fallbacks",
		"CUEMU_FAIL=cuFileStreamRegister:1:5022":                           "right; right; 0 fallbacks",
		"CUEMU_FAIL=cuFileReadAsync.run:1:5010,cuFileReadAsync.run:2:5010": "read FILE at byte 0: cuFileReadAsync: CU_FILE_NVFS_DRIVER_ERROR (cuFile error 5010); right; 1 fallbacks",
		"CUEMU_FAIL=cuFileReadAsync.run:1:5":                               "read FILE at byte 0: cuFileReadAsync: input/output error; right; 1 fallbacks",
		"CUEMU_FAIL=cuFileReadAsync.run:1:-4096":                           "read FILE at byte 4096: cuFile moved 4096 bytes of 50000; right; 1 fallbacks",
		"CUEMU_FAIL=cuFileWriteAsync.run:1:28":                             "write FILE at byte 0: cuFileWriteAsync: input/output error; right; 1 fallbacks",
		"CUEMU_FAIL=cuFileWriteAsync.run:1:-100":                           "write FILE at byte 100: cuFile moved 100 bytes of 49152; right; 1 fallbacks",
		"CUEMU_FAIL=cuFileHandleRegister:1:5008":                           "right; right; 0 fallbacks",
		"CUEMU_CUFILE=compat":                                              "right; right; 0 fallbacks",
		"CUFILE_ENV_PATH_JSON=/nonexistent":                                "right; right; 0 fallbacks",
		"STRATA_RUN_UDEV=/nonexistent":                                     "right; right; 0 fallbacks",
		"CUEMU_FAIL=cuMemHostAlloc:1:2 CUEMU_CUFILE=compat":                "right; right; 0 fallbacks", // a smaller piece
		"STRATA_COMPAT_MODE=off CUFILE_ENV_PATH_JSON=/nonexistent":         "read FILE at byte 0: compat_mode is off, but cuFile does not do it in the order of a stream: cuFile's functions for streams need its configuration file: stat /nonexistent: no such file or directory; ",
	} {
		out := apart(t, "TestOrderedFaults", append([]string{"CUFILE_ENV_PATH_JSON=" + os.DevNull}, strings.Fields(env)...)...)
		_, result, _ := strings.Cut(out, "RESULT ")
		if !strings.HasPrefix(result, want) || strings.Contains(out, "LEAK") {
			t.Errorf("%s:\n%s\nwant %s", env, out, want)
		}
	}
}

// Where there is no page-locked memory left, that is the stream's error; where there is
// little, it is made do with.
func TestOrderedMemory(t *testing.T) {
	d := gputest.Device(t, gpu.Limits{Pinned: 1 << 20})
	s := settings.Default()
	s.Threads, s.Compat = 1, settings.On
	p := pool(t, d, s)
	want := random(100000)
	f := openFile(t, p, file(t, want), os.O_RDONLY)
	b := onDevice(t, d, len(want))
	defer b.Release()
	all, err := d.Host(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	stream := gputest.Stream(t, d)
	f.QueueRead(ctx, stream, b.Span, 0)
	if err := stream.Wait(); !errors.Is(err, gpu.ErrMemory) {
		t.Error(err)
	}
	if err := f.Read(ctx, b.Span, 0); !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "page-locked") {
		t.Error(err)
	}
	all.Release()
	most, err := d.Host(1<<20 - 32<<10)
	if err != nil {
		t.Fatal(err)
	}
	f.QueueRead(ctx, stream, b.Span, 0)
	if err := stream.Wait(); err != nil {
		t.Error(err)
	}
	most.Release()
	got := make([]byte, len(want))
	move(t, d, got, b.Span, false)
	if !bytes.Equal(got, want) {
		t.Error("other bytes")
	}
}

// A pool that is closed before a stream gives back what the stream had; a stream that was not
// waited for keeps it, and Close says so.
func TestOrderedEnds(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") == "" {
		if out := apart(t, "TestOrderedEnds", "CUFILE_ENV_PATH_JSON="+os.DevNull); strings.Contains(out, "cuemu:") {
			t.Errorf("%s", out)
		}
		return
	}
	d := device(t)
	path := file(t, random(50000))
	b := onDevice(t, d, 50000)
	defer b.Release()
	s := gputest.Stream(t, d)
	for _, wait := range []bool{true, false} {
		p, err := NewPool(d, orderedSettings(), nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.Open(path, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.QueueRead(ctx, s, b.Span, 0)
		if !wait {
			if err := p.Close(); err == nil || err.Error() != "1 reads and writes on streams were not waited for" {
				t.Error(err)
			}
		}
		if err := errors.Join(s.Wait(), f.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	}
}
