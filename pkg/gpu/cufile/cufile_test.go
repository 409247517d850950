//go:build !nocuda

package cufile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"strata/pkg/gpu"
	"strata/tests/gputest"
)

func device(t *testing.T) *gpu.Device {
	t.Helper()
	return gputest.Device(t, gpu.Limits{Pinned: 1 << 20})
}

// inUse is cuFile in use on a device. A machine that has not got it skips the test.
func inUse(t *testing.T, d *gpu.Device) *Driver {
	t.Helper()
	c, err := Open(d)
	var no *Unavailable
	if errors.As(err, &no) && d.Info.Name != "CUEMU" {
		t.Skip(no)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Bytes of a file come to the device and go back to another place of it.
func TestMove(t *testing.T) {
	d := device(t)
	c := inUse(t, d)
	again, err := Open(d) // the driver is opened once
	if err != nil || again.How() != c.How() {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789"), 1000)
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	cached, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer cached.Close()
	// Since 1.7 cuFile takes files that are not open for direct I/O.
	var e *Error
	if h, err := c.Register(cached.Fd()); err == nil {
		h.Close()
	} else if !errors.As(err, &e) || e.Code != 5020 || err.Error() != "cuFileHandleRegister: CU_FILE_DIO_NOT_SET (cuFile error 5020)" || e.OfFileSystem() {
		t.Error(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := c.Register(f.Fd())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Memory().Get(5000)
	if err != nil {
		t.Fatal(err)
	}
	do := func(what string, want int64, move func() (int64, error)) {
		t.Helper()
		s.Queue(func(uintptr) error {
			if n, err := move(); n != want || err != nil {
				t.Errorf("%s: %d bytes, %v", what, n, err)
			}
			return nil
		})
	}
	do("read", 5000, func() (int64, error) { return h.Read(nil, b.Span, 3) })
	do("read past the end", 0, func() (int64, error) { return h.Read(nil, b.Span, 10000) })
	do("read across the end", 10, func() (int64, error) { return h.Read(nil, b.From(0, 20), 9990) })
	do("write", 4980, func() (int64, error) { return h.Write(nil, b.From(20, 4980), 12000) })
	s.Queue(func(uintptr) error {
		_, err := h.Read(nil, b.Span, -1)
		return err
	})
	if err := s.Wait(); !errors.As(err, &e) || e.Call != "cuFileRead" || e.Code != 5022 {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || len(got) != 16980 || !bytes.Equal(got[12000:], content[23:5003]) {
		t.Error(len(got), err)
	}
	b.Release()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	h.Close()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// withHandle calls f with a file that cuFile knows, and device memory.
func withHandle(t *testing.T, d *gpu.Device, f *os.File, do func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer)) {
	c := inUse(t, d)
	h, err := c.Register(f.Fd())
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Memory().Get(5000)
	if err != nil {
		t.Fatal(err)
	}
	do(t, d, c, h, b)
	b.Release()
	h.Close()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// openFor is a file for direct I/O with some content.
func openFor(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Registered memory is moved by where it lies in what is registered; there is only so much of it.
func TestBuffers(t *testing.T) {
	gputest.NeedDouble(t)
	if os.Getenv("STRATA_TEST_APART") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestBuffers$", "-test.v")
		c.Env = append(os.Environ(), "STRATA_TEST_APART=1", "CUEMU_CUFILE_PINNED=8192")
		if out, err := c.CombinedOutput(); err != nil || bytes.Contains(out, []byte("cuemu:")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	content := bytes.Repeat([]byte("0123456789"), 1000)
	withHandle(t, device(t), openFor(t, content), func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer) {
		if n := c.MostRegistered(); n != 8192 {
			t.Error(n)
		}
		r, err := c.RegisterBuffer(b.Span)
		if err != nil {
			t.Fatal(err)
		}
		var e *Error
		if _, err := c.RegisterBuffer(b.Span); !errors.As(err, &e) || e.Code != 5023 || e.OfMemory() {
			t.Error(err)
		}
		other, err := d.Memory().Get(5000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.RegisterBuffer(other.Span); !errors.As(err, &e) || !e.OfMemory() || err.Error() != "cuFileBufRegister: CU_FILE_GPU_MEMORY_PINNING_FAILED (cuFile error 5036)" {
			t.Error(err)
		}
		err = d.Call(func() error {
			if n, err := h.Read(r, b.From(1000, 3000), 5); n != 3000 || err != nil {
				t.Error(n, err)
			}
			if n, err := h.Write(r, b.From(1000, 3000), 20000); n != 3000 || err != nil {
				t.Error(n, err)
			}
			if _, err := h.Read(r, other.Span, 0); err == nil {
				t.Error("memory of another buffer")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		other.Release()
	})
}

// Transfers on a stream wait for their turn, and tell what they did.
func TestOrdered(t *testing.T) {
	configuration := filepath.Join(t.TempDir(), "cufile.json")
	t.Setenv(configurationVariable, configuration)
	content := bytes.Repeat([]byte("0123456789"), 1000)
	f := openFor(t, content)
	withHandle(t, device(t), f, func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer) {
		if err := c.Ordered(); err == nil || !strings.Contains(err.Error(), "need its configuration file: stat "+configuration) {
			t.Error(err)
		}
		if err := os.WriteFile(configuration, []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := c.Ordered(); err != nil {
			t.Error(err)
		}
		s, err := d.Stream()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RegisterStream(s); err != nil {
			t.Error(err)
		}
		r, err := c.RegisterBuffer(b.Span)
		if err != nil {
			t.Fatal(err)
		}
		var transfers [3]*Transfer
		for i := range transfers {
			if transfers[i], err = NewTransfer(); err != nil {
				t.Fatal(err)
			}
		}
		s.Zero(b.Span)
		s.Queue(func(stream uintptr) error { return h.QueueRead(transfers[0], stream, r, b.From(100, 4000), 2) })
		s.Queue(func(stream uintptr) error { return h.QueueWrite(transfers[1], stream, r, b.Span, 30000) })
		s.Queue(func(stream uintptr) error { return h.QueueRead(transfers[2], stream, r, b.Span, 33000) })
		if info, err := f.Stat(); err != nil || info.Size() != 10000 && d.Info.Name == "CUEMU" {
			t.Error("runs before its turn: ", info.Size(), err)
		}
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		for i, want := range []int64{4000, 5000, 2000} { // the last meets the end of the file
			if n, err := transfers[i].Moved(); n != want || err != nil {
				t.Errorf("%d: %d bytes, %v", i, n, err)
			}
			transfers[i].Close()
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || !bytes.Equal(got[30100:34100], content[2:4002]) || got[30099] != 0 {
			t.Error("other bytes: ", len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := c.DeregisterStream(s); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What keeps cuFile from working although it is there.
func TestSurroundings(t *testing.T) {
	release := filepath.Join(t.TempDir(), "osrelease")
	t.Setenv(ReleaseVariable, release)
	for text, want := range map[string]string{
		"6.1.0-18-amd64\n": "", "5.15.153.1-microsoft-standard-WSL2\n": "(kernel 5.15.153.1-microsoft-standard-wsl2)", "6.6.0-WSL2": "(kernel 6.6.0-wsl2)",
	} {
		if err := os.WriteFile(release, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := WSL(); (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), "does not exist in the Windows Subsystem for Linux "+want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	t.Setenv(ReleaseVariable, release+".none")
	if err := WSL(); err != nil {
		t.Error(err)
	}
	t.Setenv(UdevVariable, t.TempDir())
	if err := Udev(); err != nil {
		t.Error(err)
	}
	t.Setenv(UdevVariable, release+".none")
	if err := Udev(); err == nil || err.Error() != "cuFile cannot see on which drive the file lies: open "+release+".none: no such file or directory; start the container with --bind /run/udev" {
		t.Error(err)
	}
}

// The double finds what a program does wrong with cuFile.
func TestMistakes(t *testing.T) {
	gputest.NeedDouble(t)
	mistakes := map[string]struct {
		says string
		make func(t *testing.T, d *gpu.Device, f *os.File)
	}{
		"driver_left_open": {"LEAK: 0 files, 0 buffers, 0 streams registered with cuFile, whose driver is open", func(t *testing.T, d *gpu.Device, f *os.File) {
			if _, err := Open(d); err != nil {
				t.Error(err)
			}
		}},
		"file_left_registered": {"LEAK: cuFile's driver is closed with 1 files, 0 buffers, 0 streams registered", func(t *testing.T, d *gpu.Device, f *os.File) {
			c, err := Open(d)
			if err == nil {
				_, err = c.Register(f.Fd())
			}
			if err = errors.Join(err, c.Close()); err != nil {
				t.Error(err)
			}
		}},
		"file_closed_before": {"cuFileHandleDeregister: the file was closed before", func(t *testing.T, d *gpu.Device, f *os.File) {
			c, err := Open(d)
			if err != nil {
				t.Fatal(err)
			}
			h, err := c.Register(f.Fd())
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			h.Close()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}},
		"registered_twice": {"is registered", func(t *testing.T, d *gpu.Device, f *os.File) {
			c, err := Open(d)
			if err != nil {
				t.Fatal(err)
			}
			h, err := c.Register(f.Fd())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Register(f.Fd()); err == nil {
				t.Error("taken twice")
			}
			h.Close()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}},
		"driver_not_open": {"cuFileHandleRegister: the driver is not open", func(t *testing.T, d *gpu.Device, f *os.File) {
			c, err := Open(d)
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Register(f.Fd()); err == nil {
				t.Error("taken")
			}
		}},
		"no_context": {"cuFileRead: no context current on this OS thread", func(t *testing.T, d *gpu.Device, f *os.File) {
			c, err := Open(d)
			if err != nil {
				t.Fatal(err)
			}
			h, err := c.Register(f.Fd())
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.Memory().Get(100)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Read(nil, b.Span, 0); err == nil {
				t.Error("read")
			}
			// Memory that is not the device's.
			if err := d.Call(func() error { _, err := h.Read(nil, gpu.Span{}, 0); return err }); err == nil {
				t.Error("read")
			}
			b.Release()
			h.Close()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}},
	}
	more := func(name, says string, make func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer)) {
		mistakes[name] = struct {
			says string
			make func(t *testing.T, d *gpu.Device, f *os.File)
		}{says, func(t *testing.T, d *gpu.Device, f *os.File) { withHandle(t, d, f, make) }}
	}
	more("buffer_left_registered", "LEAK: cuFile's driver is closed with 0 files, 1 buffers, 0 streams registered", func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer) {
		if _, err := c.RegisterBuffer(b.Span); err != nil {
			t.Error(err)
		}
	})
	more("freed_while_registered", "it is registered with cuFile", func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer) {
		if _, err := c.RegisterBuffer(b.Span); err != nil { // until the device is closed
			t.Error(err)
		}
	})
	more("another_base", "which has to be the base", func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer) {
		r, err := c.RegisterBuffer(b.Span)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Call(func() error { _, err := h.Read(nil, b.From(10, 20), 0); return err }); err == nil {
			t.Error("read")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err == nil {
			t.Error("closed twice")
		}
	})
	more("stream_ends_registered", "a stream ends that is registered with cuFile", func(t *testing.T, d *gpu.Device, c *Driver, h *Handle, b *gpu.Buffer) {
		s, err := d.Stream()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RegisterStream(s); err != nil {
			t.Error(err)
		}
		if err := c.RegisterStream(s); err == nil {
			t.Error("registered twice")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if name := os.Getenv("STRATA_TEST_APART"); name != "" {
		path := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path, make([]byte, 1000), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR|syscall.O_DIRECT, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		mistakes[name].make(t, device(t), f)
		return
	}
	for name, m := range mistakes {
		c := exec.Command(os.Args[0], "-test.run=^TestMistakes$")
		c.Env = append(os.Environ(), "STRATA_TEST_APART="+name)
		if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(m.says)) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
