//go:build !nocuda

package filelayer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/settings"
	"strata/tests/gputest"
)

// Memory that is used again becomes known to cuFile, not before; what is registered moves as
// it should, from wherever in the allocation; it is given back before the memory is.
func TestRegister(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") == "" {
		if out := apart(t, "TestRegister"); strings.Contains(out, "cuemu:") {
			t.Errorf("%s", out)
		}
		return
	}
	d := gputest.Device(t, gpu.Limits{Memory: 2 << 20, Pinned: 16 << 20})
	s := settings.Default()
	s.Threads, s.TaskSize, s.Threshold = 3, 64<<10, 1
	p := pool(t, d, s)
	want := random(300000)
	a, b := onDevice(t, d, len(want)), onDevice(t, d, len(want))
	defer b.Release()
	move(t, d, want, a.Span, true)
	f := openFile(t, p, filepath.Join(t.TempDir(), "data"), os.O_RDWR|os.O_CREATE)
	whole, _ := d.Memory().Allocation(a.Span)
	for i, registered := range []int64{0, whole.Bytes(), whole.Bytes()} {
		if err := f.Write(ctx, a.From(int64(i), 290000), 0); err != nil {
			t.Fatal(err)
		}
		if n := p.Registered(); n != registered {
			t.Errorf("write %d: %d bytes are registered, want %d", i, n, registered)
		}
	}
	if err := p.Register(b.From(100, 5)); err != nil || p.Registered() != 2*whole.Bytes() {
		t.Error(p.Registered(), err)
	}
	if err := p.Register(b.Span); err != nil || p.Registered() != 2*whole.Bytes() { // it is already
		t.Error(p.Registered(), err)
	}
	if err := f.Read(ctx, b.From(7, 290000), 0); err != nil {
		t.Error(err)
	}
	got := make([]byte, 290000)
	move(t, d, got, b.From(7, 290000), false)
	if !bytes.Equal(got, want[2:290002]) {
		t.Error("other bytes come back")
	}
	// A pool beside it knows the same; what is deregistered stays so until it is asked for.
	other := pool(t, d, s)
	if n := other.Registered(); n != 2*whole.Bytes() {
		t.Error(n)
	}
	if err := other.Deregister(b.Span); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := f.Read(ctx, b.Span.From(0, 290000), 0); err != nil {
			t.Error(err)
		}
	}
	if n := p.Registered(); n != whole.Bytes() {
		t.Error(n)
	}
	if err := p.Register(b.Span); err != nil || other.Registered() != 2*whole.Bytes() {
		t.Error(other.Registered(), err)
	}
	// Memory that is freed is not registered any more.
	a.Release()
	all, err := d.Memory().Get(1600000) // the driver needs what is idle
	if err != nil {
		t.Fatal(err)
	}
	defer all.Release()
	if _, there := d.Memory().Allocation(whole); !there && p.Registered() != whole.Bytes() || there {
		t.Error(there, p.Registered())
	}
	if st := p.Stats(); st.Fallbacks != 0 || st.ReadBounced != 0 {
		t.Errorf("%+v", st)
	}
}

// When there is no more that can be mapped, or the settings say no, everything works without.
func TestRegisterLimits(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") != "" {
		d := device(t)
		s := settings.Default()
		s.Threads, s.TaskSize, s.Threshold, s.Register = 2, 64<<10, 1, os.Getenv("STRATA_GDS_REGISTER") != "off"
		p := pool(t, d, s)
		want := random(200000)
		path := file(t, want)
		for range 3 {
			b := onDevice(t, d, len(want))
			defer b.Release()
			for range 3 {
				if err := openFile(t, p, path, os.O_RDONLY).Read(ctx, b.Span, 0); err != nil {
					t.Error(err)
				}
			}
			got := make([]byte, len(want))
			move(t, d, got, b.Span, false)
			if !bytes.Equal(got, want) {
				t.Error("other bytes")
			}
		}
		st := p.Stats()
		t.Logf("REGISTERED %d, %d fallbacks, %d straight", p.Registered(), st.Fallbacks, st.ReadStraight)
		b := onDevice(t, d, 500000)
		defer b.Release()
		t.Logf("EXPLICIT %v", p.Register(b.Span))
		return
	}
	const straight = ", 0 fallbacks, 1800000 straight"
	for env, want := range map[string][2]string{
		"STRATA_GDS_REGISTER=off": {"REGISTERED 0" + straight, "EXPLICIT <nil>"},
		"CUEMU_CUFILE_PINNED=500000": {"REGISTERED 409600" + straight,
			"of 507904: cuFileBufRegister: CU_FILE_GPU_MEMORY_PINNING_FAILED (cuFile error 5036)"},
		"CUEMU_FAIL=cuFileBufRegister:1:5036":                          {"REGISTERED 0" + straight, "EXPLICIT <nil>"}, // not tried again unasked
		"CUEMU_FAIL=cuFileBufRegister:2:5016":                          {"REGISTERED 409600" + straight, "EXPLICIT <nil>"},
		"CUEMU_FAIL=cuFileBufRegister:4:5016":                          {"REGISTERED 614400" + straight, "cuFileBufRegister: CU_FILE_INVALID_MAPPING_SIZE (cuFile error 5016)"},
		"CUEMU_FAIL=cuFileBufRegister:1:5010,cuFileBufRegister:2:5022": {"REGISTERED 0" + straight, "cuFileBufRegister: CU_FILE_INVALID_VALUE (cuFile error 5022)"},
	} {
		out := apart(t, "TestRegisterLimits", env)
		if !strings.Contains(out, want[0]+"\n") || !strings.Contains(out, want[1]+"\n") || strings.Contains(out, "LEAK") {
			t.Errorf("%s:\n%s\nwant %s", env, out, want)
		}
	}
}

// Without cuFile there is nothing to be registered, and it is no error.
func TestRegisterWithoutCuFile(t *testing.T) {
	s := settings.Default()
	s.Threads, s.Compat = 1, settings.On
	d := device(t)
	p := pool(t, d, s)
	b := onDevice(t, d, 100000)
	defer b.Release()
	if err := p.Register(b.Span); err != nil || p.Registered() != 0 {
		t.Error(p.Registered(), err)
	}
	if err := p.Deregister(b.Span); err != nil {
		t.Error(err)
	}
}

// Registering, deregistering and moving at the same time.
func TestRegisterWhileMoving(t *testing.T) {
	needDoubles(t)
	if os.Getenv("STRATA_TEST_APART") == "" {
		if out := apart(t, "TestRegisterWhileMoving"); strings.Contains(out, "cuemu:") {
			t.Errorf("%s", out)
		}
		return
	}
	d := device(t)
	s := settings.Default()
	s.Threads, s.TaskSize, s.Threshold = 3, 16<<10, 1
	p := pool(t, d, s)
	want := random(200000)
	f := openFile(t, p, file(t, want), os.O_RDONLY)
	var buffers []*gpu.Buffer
	for range 3 {
		b := onDevice(t, d, len(want))
		defer b.Release()
		buffers = append(buffers, b)
	}
	var wg sync.WaitGroup
	for i := range 12 {
		b := buffers[i%3]
		wg.Go(func() {
			if err := f.Read(ctx, b.Span, 0); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			do := p.Register
			if i%2 > 0 {
				do = p.Deregister
			}
			if err := do(b.Span); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, b := range buffers {
		got := make([]byte, len(want))
		move(t, d, got, b.Span, false)
		if !bytes.Equal(got, want) {
			t.Error("other bytes")
		}
	}
}
