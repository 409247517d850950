//go:build !nocuda

package filelayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/settings"
)

// apart runs a test in a process of its own, in an environment that the doubles read, and
// returns what it and they wrote.
func apart(t *testing.T, test string, env ...string) string {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	c.Env = append(append(os.Environ(), "STRATA_TEST_APART=1"), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", env, err, out)
	}
	return string(out)
}

// needDoubles skips a test that asks for what only the doubles do.
func needDoubles(t *testing.T) {
	t.Helper()
	if os.Getenv("STRATA_TEST_APART") == "" && !doubled(device(t)) {
		t.Skip("needs the doubles")
	}
}

// Large reads and writes go straight, small ones and what is not whole pages of a write
// do not; all cross the bus.
func TestStraight(t *testing.T) {
	d := device(t)
	s := settings.Default()
	s.Threads, s.TaskSize = 3, 64<<10
	p := pool(t, d, s)
	switch ok, how := p.Mode(); {
	case !doubled(d) && !ok:
		t.Skip(how)
	case !doubled(d):
		t.Log(how)
	case !ok || how != "nvidia-fs 2.20":
		t.Fatal(ok, how)
	}
	want := random(300000)
	a, b := onDevice(t, d, len(want)), onDevice(t, d, len(want))
	defer a.Release()
	defer b.Release()
	move(t, d, want, a.Span, true)
	up, down, _ := d.Traffic()
	f := openFile(t, p, filepath.Join(t.TempDir(), "data"), os.O_RDWR|os.O_CREATE)
	if err := f.Write(ctx, a.Span, 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(ctx, b.Span, 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(ctx, b.From(0, 16<<10-1), 100); err != nil { // below the threshold
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	up2, down2, _ := d.Traffic()
	move(t, d, got, b.Span, false)
	if !bytes.Equal(got, want) {
		t.Error("other bytes come back")
	}
	if !doubled(d) && p.Stats().Fallbacks > 0 {
		t.Skip("cuFile takes no files of this file system: choose another by TMPDIR")
	}
	// 3996 bytes to the first page, then 72 pages, then 1092 bytes.
	st := p.Stats()
	if st.Latency.Count() == 0 {
		t.Error("no latencies")
	}
	if st.Latency = (Latency{}); st != (Stats{Reads: 2, Writes: 1, ReadStraight: 300000, WrittenStraight: 72 * 4096, ReadBounced: 16<<10 - 1, WrittenBounced: 3996 + 1092}) {
		t.Errorf("%+v", st)
	}
	if up2-up != 300000+16<<10-1 || down2-down != 300000 {
		t.Errorf("%d bytes to the device, %d from it", up2-up, down2-down)
	}
	if up, down, fallbacks := d.Straight(); up != 300000 || down != 72*4096 || fallbacks != 0 {
		t.Errorf("%d bytes straight to the device, %d from it, %d fallbacks", up, down, fallbacks)
	}
	if d.Pinned().Peak() > p.Memory()+1<<20 {
		t.Error(d.Pinned().Peak(), p.Memory())
	}
}

// Whether cuFile moves data straight, and why not.
func TestMode(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") != "" {
		d := device(t)
		ok, reason := Available(d)
		p := pool(t, d, settings.Default())
		again, same := p.Mode()
		if again != ok || same != reason {
			t.Errorf("%v %q, %v %q", ok, reason, again, same)
		}
		fmt.Printf("MODE %v %s\n", ok, reason)
		s := settings.Default()
		s.Compat = settings.On
		if ok, reason := pool(t, d, s).Mode(); ok || reason != "compat_mode is on" {
			t.Error(ok, reason)
		}
		s.Compat = settings.Off
		forced, err := NewPool(d, s, nil)
		if err == nil {
			if err := forced.Close(); err != nil {
				t.Error(err)
			}
		} else if !untried(reason) && err.Error() != "compat_mode is off, but files cannot be moved directly to the GPU: "+reason {
			t.Error(err)
		}
		if want := ok || untried(reason); (err == nil) != want { // where cuFile is demanded it is tried
			t.Error(err)
		}
		return
	}
	wsl := file(t, []byte("5.15.153.1-microsoft-standard-WSL2\n"))
	none, old, recent := file(t, []byte("nvidia 1 0 - Live 0x0\n")), file(t, []byte("5.14.0-427.el9.x86_64\n")), file(t, []byte("6.2.0-39-generic\n"))
	peers, usual := file(t, []byte(`{"properties": {"use_pci_p2pdma": true}}`)), file(t, []byte(`{"properties": {"use_pci_p2pdma": false}}`))
	without := "STRATA_PROC_MODULES=" + none + " STRATA_PROC_OSRELEASE=" + recent + " CUFILE_ENV_PATH_JSON="
	for env, want := range map[string]string{
		"STRATA_PROC_OSRELEASE=" + wsl:                                  "false GPUDirect Storage does not exist in the Windows Subsystem for Linux (kernel 5.15.153.1-microsoft-standard-wsl2)",
		"STRATA_PROC_MODULES=" + none + " STRATA_PROC_OSRELEASE=" + old: "false the kernel module nvidia-fs is not loaded, and Linux 5.14 has no PCI peer-to-peer transfers for it",
		without + usual: "false the kernel module nvidia-fs is not loaded, and PCI peer-to-peer transfers are off in " + usual + " (use_pci_p2pdma)",
		without + peers + " CUEMU_DRIVER=12080 CUEMU_CUFILE=p2p": "true PCI peer-to-peer transfers",
		without + peers + " CUEMU_DRIVER=12040 CUEMU_CUFILE=p2p": "false the kernel module nvidia-fs is not loaded, and PCI peer-to-peer transfers need driver 565 or newer",
		"CUEMU_CUFILE=native":                          "true nvidia-fs 2.20",
		"CUEMU_CUFILE=p2p":                             "true PCI peer-to-peer transfers",
		"CUEMU_CUFILE=compat":                          "false cuFile finds neither the kernel module nvidia-fs nor PCI peer-to-peer transfers: cuFileDriverOpen: CU_FILE_DRIVER_NOT_INITIALIZED (cuFile error 5001)",
		"CUEMU_CUFILE_FORCE_COMPAT=1":                  "false cuFile is told to use its compatibility mode (CUFILE_FORCE_COMPAT_MODE or cufile.json)",
		"STRATA_LIBCUFILE=/nonexistent/libcufile.so.0": "false cuFile's library cannot be opened: /nonexistent/libcufile.so.0: cannot open shared object file: No such file or directory",
		"STRATA_LIBCUFILE=libc.so.6":                   "false cuFile's library is older than CUDA 12.0 or not cuFile's: it has no cuFileGetVersion",
		"STRATA_PROC_MODULES=/nonexistent/modules":     "false cuFile hangs where /proc/modules cannot be read: open /nonexistent/modules: no such file or directory",
		"CUEMU_FAIL=cuFileDriverOpen:1:5033,cuFileDriverOpen:2:5033,cuFileDriverOpen:3:5033":                            "false cuFile does not start: cuFileDriverOpen: CU_FILE_NVFS_SETUP_ERROR (cuFile error 5033)",
		"CUEMU_FAIL=cuFileDriverGetProperties:1:5002,cuFileDriverGetProperties:2:5002,cuFileDriverGetProperties:3:5002": "false cuFile does not say how it moves data: cuFileDriverGetProperties: CU_FILE_DRIVER_INVALID_PROPS (cuFile error 5002)",
	} {
		out := apart(t, "TestMode", strings.Fields(env)...)
		if !strings.Contains(out, "MODE "+want+"\n") || strings.Contains(out, "LEAK") {
			t.Errorf("%s:\n%s\nwant %s", env, out, want)
		}
	}
}

// Whatever fails: what comes back is right, or there is one error that names the file, and
// nothing is left behind.
func TestFaults(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") != "" {
		fmt.Printf("RESULT %s\n", roundTrip(t))
		return
	}
	if testing.Short() {
		t.Skip("starts many processes")
	}
	type fault struct {
		name, env string
		want      string // prefix of the result
	}
	var faults []fault
	add := func(want, mode, call string, code string, nth ...int) {
		for _, n := range nth {
			faults = append(faults, fault{fmt.Sprintf("%s %s %d %s", mode, call, n, code), fmt.Sprintf("CUEMU_FAIL=%s:%d:%s", call, n, code), want})
		}
	}
	// What cuFile does not do goes by way of the host; a short move goes on.
	add("right, 1 fallbacks, 1 warnings", "native", "cuFileRead", "5010", 1, 2, 5, 7)
	add("right, 1 fallbacks, 1 warnings", "native", "cuFileRead", "5", 3)
	add("right, 1 fallbacks, 1 warnings", "native", "cuFileWrite", "28", 1, 4, 6)
	add("right, 0 fallbacks, 0 warnings", "native", "cuFileRead", "-100", 1, 7)
	add("right, 0 fallbacks, 0 warnings", "native", "cuFileWrite", "-1", 2)
	add("right, 13 fallbacks, 1 warnings", "native", "cuFileHandleRegister", "5008", 1)
	add("right, 0 fallbacks, 0 warnings", "native", "cuFileDriverOpen", "5033", 1)
	add("right, 0 fallbacks, 0 warnings", "compat", "cuFileDriverOpen", "5001", 1)
	// Less page-locked memory than wanted is made do with.
	add("right, 0 fallbacks, 0 warnings", "compat", "cuMemHostAlloc", "2", 3, 4, 5)
	// Of the device there is an error.
	add("write ", "compat", "cuMemcpyDtoHAsync_v2", "1", 1, 5)
	add("read ", "compat", "cuMemcpyHtoDAsync_v2", "1", 2, 6)
	add("write ", "compat", "cuStreamCreate", "304", 2)
	add("write ", "compat", "cuStreamSynchronize", "1", 2, 6)
	add("read ", "compat", "cuStreamSynchronize", "1", 9, 14)
	add("read ", "compat", "cuMemcpyHtoDAsync_v2", "719s", 2)
	add("write ", "compat", "cuMemcpyDtoHAsync_v2", "719s", 3)
	add("write ", "native", "cuFileWrite", "719s", 3)
	add("read ", "native", "cuFileRead", "719s", 2)
	var wg sync.WaitGroup
	next := make(chan fault)
	for range 2 {
		wg.Go(func() {
			for f := range next {
				out := apart(t, "TestFaults", f.env, "CUEMU_CUFILE="+strings.Fields(f.name)[0])
				_, result, _ := strings.Cut(out, "RESULT ")
				result, _, _ = strings.Cut(result, "\n")
				lost := strings.HasSuffix(f.env, "s")
				if !strings.HasPrefix(result, f.want) || strings.Contains(out, "LEAK") && !lost || !strings.Contains(out, "injected") {
					t.Errorf("%s:\n%s\nwant %s", f.name, out, f.want)
				}
				if lost != strings.Contains(result, "LOST") {
					t.Errorf("%s: %s", f.name, result)
				}
			}
		})
	}
	for _, f := range faults {
		next <- f
	}
	close(next)
	wg.Wait()
}

// roundTrip writes device memory to a file and reads it back, and says what came of it.
func roundTrip(t *testing.T) string {
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], gpu.Limits{Pinned: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	want := random(50001)
	pinned, err := d.Host(len(want))
	if err != nil {
		t.Fatal(err)
	}
	a, b := onDevice(t, d, len(want)), onDevice(t, d, len(want))
	stream, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	copy(pinned.B, want)
	stream.Upload(a.Span, pinned.B)
	if err := stream.Wait(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	s := settings.Default()
	s.Threads, s.TaskSize, s.Threshold = 2, 8192, 1
	var warnings []string
	var mu sync.Mutex
	p, err := NewPool(d, s, func(text string) { mu.Lock(); warnings = append(warnings, text); mu.Unlock() })
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data")
	f, err := p.Open(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	result := "right"
	if err = f.Write(ctx, a.Span, 100); err == nil {
		err = f.Read(ctx, b.Span, 100)
	}
	if err != nil {
		result = err.Error()
		if !strings.Contains(result, path+" at byte ") || strings.Contains(result, "\n") {
			t.Error(result)
		}
		if errors.Is(err, gpu.ErrLost) {
			result += " LOST"
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			break
		}
	}
	if result == "right" {
		stream.Download(pinned.B, b.Span)
		if err := stream.Wait(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(pinned.B, want) {
			t.Error("other bytes come back")
		}
		st := p.Stats()
		if st.ReadStraight+st.ReadBounced != int64(len(want)) || st.WrittenStraight+st.WrittenBounced != int64(len(want)) {
			t.Errorf("%+v", st)
		}
		result = fmt.Sprintf("right, %d fallbacks, %d warnings %q", st.Fallbacks, len(warnings), warnings)
	}
	pinned.Release()
	a.Release()
	b.Release()
	_ = stream.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return result
}

// A file that ends too early is an error of the file, whatever way it went, and no failure of
// cuFile.
func TestShortStraight(t *testing.T) {
	needDoubles(t)
	d := device(t)
	s := settings.Default()
	s.Threads, s.TaskSize, s.Threshold = 2, 8192, 1
	p := pool(t, d, s)
	f := openFile(t, p, file(t, random(10000)), os.O_RDONLY)
	b := onDevice(t, d, 20000)
	defer b.Release()
	err := f.Read(ctx, b.Span, 0)
	if err == nil || !strings.HasSuffix(err.Error(), "at byte 10000: the file ends, 10000 bytes are missing: unexpected EOF") {
		t.Error(err)
	}
	if st := p.Stats(); st.Fallbacks != 0 || st.ReadStraight != 10000 {
		t.Errorf("%+v", st)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.Read(ended, b.Span, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A file that cuFile does not take is an error where cuFile is demanded, and goes by way
// of the host where it is not.
func TestRefusedFile(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") == "" {
		if out := apart(t, "TestRefusedFile", "CUEMU_FAIL=cuFileHandleRegister:1:5008,cuFileHandleRegister:2:5008"); strings.Contains(out, "LEAK") {
			t.Errorf("%s", out)
		}
		return
	}
	d := device(t)
	s := settings.Default()
	s.Threads, s.Compat = 2, settings.Off
	path := file(t, random(100000))
	b := onDevice(t, d, 100000)
	defer b.Release()
	f := openFile(t, pool(t, d, s), path, os.O_RDONLY)
	err := f.Read(ctx, b.Span, 0)
	if err == nil || err.Error() != "read "+path+" at byte 0: compat_mode is off, but cuFile does not take the file: cuFileHandleRegister: CU_FILE_IO_NOT_SUPPORTED (cuFile error 5008)" {
		t.Error(err)
	}
	s.Compat = settings.Auto
	p := pool(t, d, s)
	for range 5 { // cuFile is asked about the file system once
		if err := openFile(t, p, path, os.O_RDONLY).Read(ctx, b.Span, 0); err != nil {
			t.Error(err)
		}
	}
	if st := p.Stats(); st.Fallbacks != 5 || st.ReadBounced != 500000 || st.ReadStraight != 0 {
		t.Errorf("%+v", st)
	}
	if _, _, fallbacks := d.Straight(); fallbacks != 5 {
		t.Error(fallbacks)
	}
}

// Whether cuFile takes a file, and why not: it cannot look up drives, has no use for the
// file system, or is not in use. Where it is demanded it is tried.
func TestFileMode(t *testing.T) {
	needDoubles(t)
	d := device(t)
	path := file(t, random(100000))
	b := onDevice(t, d, 100000)
	defer b.Release()
	for _, c := range []struct {
		name   string
		udev   string
		mode   settings.Mode
		ok     bool
		reason string
	}{
		{"straight", os.DevNull, settings.Auto, true, "nvidia-fs 2.20"},
		{"host", os.DevNull, settings.On, false, "compat_mode is on"},
		{"no udev", "/nonexistent", settings.Auto, false, "cuFile cannot see on which drive the file lies: open /nonexistent: no such file or directory; start the container with --bind /run/udev"},
		{"no udev, demanded", "/nonexistent", settings.Off, true, "nvidia-fs 2.20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("STRATA_RUN_UDEV", c.udev)
			s := settings.Default()
			s.Threads, s.Compat = 1, c.mode
			p := pool(t, d, s)
			f := openFile(t, p, path, os.O_RDONLY)
			if c.udev != os.DevNull && drives(f.file, settings.Auto) == nil {
				t.Skip("neither ext4 nor XFS: choose another folder by TMPDIR")
			}
			if ok, reason := f.Mode(); ok != c.ok || reason != c.reason {
				t.Errorf("%v %q", ok, reason)
			}
			if err := f.Read(ctx, b.Span, 0); err != nil {
				t.Error(err)
			}
			if st := f.Stats(); (st.ReadStraight == 100000) != c.ok || (st.Fallbacks == 0) != (c.ok || c.mode == settings.On) {
				t.Errorf("%+v", st)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if ok, reason := f.Mode(); ok || c.ok && reason != "file already closed" {
				t.Errorf("%v %q", ok, reason)
			}
		})
	}
}

// Pools of two devices use one cuFile; each moves data to its own.
func TestTwoDevices(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") == "" {
		if out := apart(t, "TestTwoDevices", "CUEMU_DEVICES=2"); strings.Contains(out, "LEAK") {
			t.Errorf("%s", out)
		}
		return
	}
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	s := settings.Default()
	s.Threads, s.TaskSize, s.Compat = 2, 20000, settings.Off
	var devices []*gpu.Device
	var pools []*Pool
	for _, info := range list {
		d, err := gpu.Open(info, gpu.Limits{Pinned: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPool(d, s, func(text string) { t.Error(text) })
		if err != nil {
			t.Fatal(err)
		}
		devices, pools = append(devices, d), append(pools, p)
	}
	want := random(100000)
	path := file(t, want)
	for i, p := range pools { // the first is closed while the second is in use
		f, err := p.Open(path, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := onDevice(t, devices[i], len(want))
		if err := f.Read(ctx, b.Span, 0); err != nil {
			t.Error(err)
		}
		got := make([]byte, len(want))
		move(t, devices[i], got, b.Span, false)
		if !bytes.Equal(got, want) {
			t.Errorf("device %d: other bytes", i)
		}
		b.Release()
		for _, err := range []error{f.Close(), p.Close(), devices[i].Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// untried tells whether cuFile was not asked, for a reason that the system is: where it is demanded it is.
func untried(reason string) bool {
	return strings.Contains(reason, "Windows") || strings.Contains(reason, "is not loaded, and ")
}

// TestNotAsked: without nvidia-fs and peer-to-peer transfers, as on the H100 of the record (Linux 6.18, driver 580),
// cuFile is not asked unless somebody demands it.
func TestNotAsked(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") != "" {
		p := pool(t, device(t), settings.Default())
		if os.Getenv("DEMANDED") != "" {
			p.Demand()
		}
		known := p.Known()
		ok, reason := p.Mode()
		fmt.Printf("MODE %v %v %s\n", known, ok, reason)
		return
	}
	none, release, usual := file(t, []byte("nvidia 1 0 - Live 0x0\n")), file(t, []byte("6.18.44-fc-v657-gpu\n")), file(t, []byte(`{"properties": {}}`))
	h100 := "STRATA_PROC_MODULES=" + none + " STRATA_PROC_OSRELEASE=" + release + " CUFILE_ENV_PATH_JSON=" + usual + " CUEMU_DRIVER=13000 CUEMU_CUFILE=compat"
	// every call of cuFileDriverOpen would fail with a code of its own
	const called = " CUEMU_FAIL=cuFileDriverOpen:1:5033s"
	for env, want := range map[string]string{
		h100 + called:                 "true false the kernel module nvidia-fs is not loaded, and PCI peer-to-peer transfers are off in " + usual + " (use_pci_p2pdma)",
		h100 + called + " DEMANDED=1": " false cuFile does not start: cuFileDriverOpen: CU_FILE_NVFS_SETUP_ERROR (cuFile error 5033)",
		called:                        " false cuFile does not start: cuFileDriverOpen: CU_FILE_NVFS_SETUP_ERROR (cuFile error 5033)",
	} {
		out := apart(t, "TestNotAsked", strings.Fields(env)...)
		if !strings.Contains(out, want+"\n") || strings.Contains(out, "LEAK") {
			t.Errorf("%s:\n%s\nwant %s", env, out, want)
		}
	}
}
