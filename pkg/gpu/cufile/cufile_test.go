//go:build !nocuda

package cufile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"strata/pkg/gpu"
	"strata/tests/gputest"
)

func device(t *testing.T) *gpu.Device {
	t.Helper()
	return gputest.Device(t, gpu.Limits{Pinned: 1 << 20})
}

// Bytes of a file come to the device and go back to another place of it.
func TestMove(t *testing.T) {
	d := device(t)
	c, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
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
	var e *Error
	if _, err := c.Register(cached.Fd()); !errors.As(err, &e) || e.Code != 5020 || err.Error() != "cuFileHandleRegister: CU_FILE_DIO_NOT_SET (cuFile error 5020)" || e.OfFileSystem() {
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
	do("read", 5000, func() (int64, error) { return h.Read(b.Span, 3) })
	do("read past the end", 0, func() (int64, error) { return h.Read(b.Span, 10000) })
	do("read across the end", 10, func() (int64, error) { return h.Read(b.From(0, 20), 9990) })
	do("write", 4980, func() (int64, error) { return h.Write(b.From(20, 4980), 12000) })
	s.Queue(func(uintptr) error {
		_, err := h.Read(b.Span, -1)
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

// The double finds what a program does wrong with cuFile.
func TestMistakes(t *testing.T) {
	mistakes := map[string]struct {
		says string
		make func(t *testing.T, d *gpu.Device, f *os.File)
	}{
		"driver_left_open": {"LEAK: 0 files registered with cuFile, whose driver is open", func(t *testing.T, d *gpu.Device, f *os.File) {
			if _, err := Open(d); err != nil {
				t.Error(err)
			}
		}},
		"file_left_registered": {"LEAK: cuFile's driver is closed with 1 files registered", func(t *testing.T, d *gpu.Device, f *os.File) {
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
			if _, err := h.Read(b.Span, 0); err == nil {
				t.Error("read")
			}
			// Memory that is not the device's.
			if err := d.Call(func() error { _, err := h.Read(gpu.Span{}, 0); return err }); err == nil {
				t.Error("read")
			}
			b.Release()
			h.Close()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}},
	}
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
