//go:build !nocuda

package cudaemu_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/tests/cudaemu"
)

// apart runs a test again, in a process that sees the double with these knobs, and returns what that said, and
// whether it passed; in that process it returns true first.
func apart(t *testing.T, env ...string) (there bool, out string, passed bool) {
	t.Helper()
	if os.Getenv("STRATA_TEST_APART") == t.Name() {
		return true, "", false
	}
	lib, err := cudaemu.Build()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.count=1", "-test.v")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CUEMU_") {
			c.Env = append(c.Env, v)
		}
	}
	for variable, value := range cudaemu.Environment(lib) {
		c.Env = append(c.Env, variable+"="+value)
	}
	c.Env = append(append(c.Env, "STRATA_TEST_APART="+t.Name()), env...)
	b, err := c.CombinedOutput()
	return false, string(b), err == nil
}

func open(t *testing.T, l gpu.Limits) *gpu.Device {
	t.Helper()
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], l)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// bench is a device with two streams, memory of it and of the host.
type bench struct {
	*gpu.Device
	s [2]*gpu.Stream
	b [2]*gpu.Buffer
	h [2][]byte
	e *gpu.Event
}

const n = 64 << 10

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Device: open(t, gpu.Limits{Pinned: 8 << 20})}
	for i := range b.s {
		h, err := b.Host(n)
		if err == nil {
			b.h[i] = h.B[:n]
			b.b[i], err = b.Memory().Get(n)
		}
		if err != nil {
			t.Fatal(err)
		}
		clear(b.h[i])
	}
	var err error
	if b.e, err = b.Event(); err != nil {
		t.Fatal(err)
	}
	for i := range b.s {
		if b.s[i], err = b.Stream(); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// own returns page-locked memory that is the process's own, registered.
func own(b *bench) (*mem.Buffer, error) { return b.Host(4 << 20) }

func (b *bench) wait() error { return errors.Join(b.s[0].Wait(), b.s[1].Wait()) }

// TestRaces plants mistakes of ordering, which the double has to name, beside the same work in order, of which it
// has to say nothing.
func TestRaces(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bench) error
		want string // what is said; "": nothing
	}{
		"streams": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			b.s[1].Download(b.h[1], b.b[0].Span)
			return b.wait()
		}, "is read by cuMemcpyDtoHAsync_v2 on stream 2, and was written by cuMemsetD8Async on stream 1"},
		"streams, other order of waits": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			b.s[1].Download(b.h[1], b.b[0].Span)
			return errors.Join(b.s[1].Wait(), b.s[0].Wait())
		}, "is written by cuMemsetD8Async on stream 1, and was read by cuMemcpyDtoHAsync_v2 on stream 2"},
		"event": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Record(b.e)
			b.s[1].Follow(b.e)
			b.s[1].Download(b.h[1], b.b[0].Span)
			return errors.Join(b.s[1].Wait(), b.s[0].Wait())
		}, ""},
		"event recorded too early": {func(b *bench) error {
			b.s[0].Record(b.e)
			b.s[0].Zero(b.b[0].Span)
			b.s[1].Follow(b.e)
			b.s[1].Download(b.h[1], b.b[0].Span)
			return b.wait()
		}, "race: byte 0 of "},
		"waited for": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			if err := b.s[0].Wait(); err != nil {
				return err
			}
			b.s[1].Download(b.h[1], b.b[0].Span)
			return b.wait()
		}, ""},
		"other bytes": {func(b *bench) error {
			b.s[0].Zero(b.b[0].From(0, 1000))
			b.s[1].Zero(b.b[0].From(1000, 1000))
			return b.wait()
		}, ""},
		"one byte in common": {func(b *bench) error {
			b.s[0].Zero(b.b[0].From(0, 1000))
			b.s[1].Zero(b.b[0].From(999, 1000))
			return b.wait()
		}, "race: byte 999 of "},
		"both read": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			if err := b.s[0].Wait(); err != nil {
				return err
			}
			b.s[0].Download(b.h[0], b.b[0].Span)
			b.s[1].Download(b.h[1], b.b[0].Span)
			return b.wait()
		}, ""},
		"page-locked memory": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Download(b.h[0], b.b[0].Span)
			b.s[1].Upload(b.b[1].Span, b.h[0])
			return b.wait()
		}, "is read by cuMemcpyHtoDAsync_v2 on stream 2, and was written by cuMemcpyDtoHAsync_v2 on stream 1"},
		"host writes": {func(b *bench) error {
			b.s[0].Upload(b.b[0].Span, b.h[0])
			b.h[0][n-1]++
			return b.wait()
		}, "race: the host wrote to 65536 bytes"},
		"host writes later": {func(b *bench) error {
			b.s[0].Upload(b.b[0].Span, b.h[0])
			err := b.wait()
			b.h[0][n-1]++
			return err
		}, ""},
		"host reads": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Download(b.h[0], b.b[0].Span)
			if b.h[0][n/2] != 0 { // the process ends here
				return nil
			}
			return b.wait()
		}, "fault address"},
		"host reads later": {func(b *bench) error {
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Download(b.h[0], b.b[0].Span)
			err := b.wait()
			if b.h[0][n/2] != 0 {
				return errors.New("not zero")
			}
			return err
		}, ""},
		"host writes to memory of its own": {func(b *bench) error {
			h, err := own(b)
			if err != nil {
				return err
			}
			b.s[0].Upload(b.b[0].Span, h.B[:n])
			h.B[n-1]++
			return b.wait()
		}, "race: the host wrote to 65536 bytes"},
		"streams at memory of the host's own": {func(b *bench) error {
			h, err := own(b)
			if err != nil {
				return err
			}
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Download(h.B[:n], b.b[0].Span)
			b.s[1].Upload(b.b[1].Span, h.B[:n])
			return b.wait()
		}, "is read by cuMemcpyHtoDAsync_v2 on stream 2, and was written by cuMemcpyDtoHAsync_v2 on stream 1"},
		"memory of the host's own is unregistered too early": {func(b *bench) error {
			h, err := own(b)
			if err != nil {
				return err
			}
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Download(h.B[:n], b.b[0].Span)
			h.Release()
			return errors.Join(b.Close(), b.wait())
		}, "is unregistered while its copy is queued"},
		"memory of the host's own, in order": {func(b *bench) error {
			h, err := own(b)
			if err != nil {
				return err
			}
			b.s[0].Zero(b.b[0].Span)
			b.s[0].Download(h.B[:n], b.b[0].Span)
			if err := b.s[0].Wait(); err != nil {
				return err
			}
			h.B[0]++
			b.s[1].Upload(b.b[1].Span, h.B[:n])
			err = b.wait()
			h.Release()
			return err
		}, ""},
		"function on the host": {func(b *bench) error {
			b.s[0].Host(func() { b.h[0][5]++ })
			b.s[0].Upload(b.b[0].Span, b.h[0])
			b.s[0].Download(b.h[1], b.b[0].Span)
			b.s[0].Host(func() { b.h[0][6] = b.h[1][5] })
			err := b.wait()
			if b.h[0][6] != 1 {
				return errors.New("the function on the host came too late")
			}
			return err
		}, ""},
		"kernel": {func(b *bench) error {
			b.h[0][0] = 1
			b.s[0].Upload(b.b[0].Span, b.h[0])
			b.s[0].Zero(b.b[1].From(0, 8))
			if err := b.s[0].Wait(); err != nil {
				return err
			}
			if err := kernels.CountSet(b.s[0], b.b[1].From(0, 8), b.b[0].Span); err != nil {
				return err
			}
			b.s[1].Download(b.h[1][:8], b.b[1].From(0, 8))
			return b.wait()
		}, "by count_set on stream 1"},
	} {
		t.Run(name, func(t *testing.T) {
			ptx := "0"
			if name == "kernel" { // whose accesses only the interpreter sees, or a double with -DEMU_TRACE
				ptx = "1"
			}
			there, out, passed := apart(t, "CUEMU_RACES=1", "CUEMU_PTX="+ptx)
			if there {
				if err := c.do(newBench(t)); err != nil {
					t.Fatal(err)
				}
				return
			}
			if passed != (c.want == "") || !strings.Contains(out, c.want) || passed && strings.Contains(out, "race") {
				t.Errorf("passed: %v, want %q in\n%s", passed, c.want, out)
			}
		})
	}
}

// TestInterleave: streams run in an order that is drawn among those that streams and events allow, and that the seed
// repeats.
func TestInterleave(t *testing.T) {
	run := func(seed int) string {
		there, out, passed := apart(t, "CUEMU_INTERLEAVE=1", fmt.Sprintf("CUEMU_SEED=%d", seed))
		if there {
			return ""
		}
		_, order, ok := strings.Cut(out, "ORDER ")
		if order, _, _ = strings.Cut(order, "\n"); !passed || !ok {
			t.Fatal(out)
		}
		return order
	}
	if os.Getenv("STRATA_TEST_APART") == t.Name() {
		b := newBench(t)
		var order []byte
		for i := range 8 { // the device has one thread
			b.s[0].Host(func() { order = append(order, 'a'+byte(i)) })
			b.s[1].Host(func() { order = append(order, 'A'+byte(i)) })
		}
		b.s[0].Record(b.e)
		b.s[1].Follow(b.e)
		b.s[1].Host(func() { order = append(order, '!') })
		if err := b.wait(); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("ORDER %s\n", order)
		return
	}
	seen := map[string]bool{}
	for seed := range 4 {
		order := run(seed)
		seen[order] = true
		letters := func(from byte) string {
			return string(bytes.Map(func(r rune) rune {
				if r < rune(from) || r >= rune(from)+8 {
					return -1
				}
				return r
			}, []byte(order)))
		}
		if letters('a') != "abcdefgh" || letters('A') != "ABCDEFGH" || strings.Index(order, "!") < strings.Index(order, "h") {
			t.Errorf("seed %d: %s", seed, order)
		}
		if seed == 0 && run(seed) != order {
			t.Error("a seed does not repeat its order")
		}
	}
	if len(seen) < 3 {
		t.Errorf("of 4 seeds there are %d orders: %v", len(seen), seen)
	}
}

// TestReuse: memory that is freed is what the next allocation gets, with CUEMU_REUSE, and never without.
func TestReuse(t *testing.T) {
	for _, reuse := range []string{"1", "0"} {
		t.Run(reuse, func(t *testing.T) {
			there, out, passed := apart(t, "CUEMU_REUSE="+reuse)
			if !there {
				if !passed {
					t.Error(out)
				}
				return
			}
			d := open(t, gpu.Limits{Memory: 1 << 20, Pinned: 1 << 20})
			first, err := d.Memory().Get(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			address := first.Address()
			first.Release()
			second, err := d.Memory().Get(600 << 10) // for which the first goes back to the driver
			if err != nil {
				t.Fatal(err)
			}
			if again := second.Address() >= address && second.Address() < address+1<<20; again != (reuse == "1") {
				t.Errorf("%#x, and then %#x", address, second.Address())
			}
		})
	}
}

// TestLateError: an error that a call plants shows at a later call, of another thread, that has nothing to do with it.
func TestLateError(t *testing.T) {
	there, out, passed := apart(t, "CUEMU_FAIL=cuMemsetD8Async:1:719+3")
	if !there {
		if !passed || !strings.Contains(out, "shows in cuEventCreate what an earlier call did") {
			t.Error(out)
		}
		return
	}
	b := newBench(t)
	b.s[0].Zero(b.b[0].Span) // whose fault it is
	if err := b.wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memory().Get(1 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Event(); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("%v, want the device's loss", err)
	}
	if b.s[1].Zero(b.b[1].Span); !errors.Is(b.s[1].Wait(), gpu.ErrLost) || b.Lost() == nil {
		t.Error("the error does not stay")
	}
}

// TestImages: where libnvidia-ptxjitcompiler is missing PTX cannot be loaded, but cubins can, of which the double finds
// the kernels by their names, and what they are called with; another architecture's are refused, as are all where it
// interprets PTX.
func TestImages(t *testing.T) {
	const noJIT, interprets = "CUEMU_NO_JIT=1", "CUEMU_PTX=1"
	for name, c := range map[string]struct {
		knob, image, want string
	}{
		"ptx":            {noJIT, ".version 8.0\n.target sm_70\n.address_size 64\n\x00", "(CUDA error 221)"},
		"cubin":          {noJIT, cubin("mean", 75, meanSizes...), ""},
		"older cubin":    {noJIT, cubin("mean", 70, meanSizes...), ""},
		"other cubin":    {noJIT, cubin("mean", 80, meanSizes...), "(CUDA error 209)"},
		"no kernel":      {noJIT, cubin("no_kernel_of_ours", 75), "(CUDA error 500)"},
		"another name":   {noJIT, cubin("add_planes_u8", 75, 8, 8, 8, 8, 4, 4), "cuModuleGetFunction"},
		"not NVIDIA's":   {noJIT, strings.Replace(cubin("mean", 75, meanSizes...), "\xbe\x00", "\x3e\x00", 1), "(CUDA error 200)"},
		"neither":        {noJIT, "\x7fELG", "(CUDA error 221)"},
		"fatbin, empty":  {noJIT, "\x50\xed\x55\xba", "(CUDA error 209)"},
		"stale":          {noJIT, cubin("mean", 75, 8, 8, 4), "(CUDA error 200)"},
		"is interpreted": {interprets, cubin("mean", 75, meanSizes...), "(CUDA error 209)"},
	} {
		t.Run(name, func(t *testing.T) {
			there, out, passed := apart(t, c.knob)
			if !there {
				if !passed {
					t.Error(out)
				}
				return
			}
			d, code := open(t, gpu.Limits{}), machineCode(c.image)
			err := d.Loaded(code)
			if err == nil {
				_, err = d.Kernel(code, "mean")
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// machineCode is an image that is loaded as it is, whatever the device.
func machineCode(image string) *gpu.Code {
	return &gpu.Code{
		Machine: func(gpu.Info) ([]byte, error) { return []byte(image), nil },
		PTX:     func(string) (string, error) { return "", errors.New("there is none") },
	}
}

// meanSizes are the sizes of the kernel mean's parameters.
var meanSizes = []uint32{8, 8, 8, 4}

// cubin is an ELF image as ptxas makes it, as far as the names of its sections and the sizes of a kernel's parameters
// go.
func cubin(kernel string, arch uint32, sizes ...uint32) string {
	names := "\x00.text." + kernel + "\x00.nv.info." + kernel + "\x00.shstrtab\x00"
	name := func(section string) uint32 { return uint32(strings.Index(names, section)) }
	var b, info bytes.Buffer
	put := func(b *bytes.Buffer, v ...any) {
		for _, v := range v {
			_ = binary.Write(b, binary.LittleEndian, v)
		}
	}
	for i, size := range sizes { // format, EIATTR_KPARAM_INFO, length; index, number and offset, size
		put(&info, uint8(4), uint8(0x17), uint16(12), uint32(0), uint32(i), size<<18)
	}
	const header, section = 64, 64
	at := uint64(header + len(names))
	h := elf.Header64{Type: 2, Machine: 190, Version: 1, Shoff: at + uint64(info.Len()), Flags: arch, Ehsize: header, Shentsize: section, Shnum: 4, Shstrndx: 3}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01\x33\x07")
	put(&b, h)
	b.WriteString(names)
	b.Write(info.Bytes())
	put(&b, elf.Section64{}, elf.Section64{Name: name(".text."), Type: uint32(elf.SHT_PROGBITS)},
		elf.Section64{Name: name(".nv.info."), Off: at, Size: uint64(info.Len())},
		elf.Section64{Name: name(".shstrtab"), Type: uint32(elf.SHT_STRTAB), Off: header, Size: uint64(len(names))})
	return b.String()
}

// TestTraced: a double that is built with -DEMU_TRACE sees what kernels that are compiled for the host touch.
func TestTraced(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the kernels again")
	}
	lib, err := cudaemu.BuildTraced()
	if err != nil {
		t.Fatal(err)
	}
	there, out, passed := apart(t, "CUEMU_RACES=1", "STRATA_LIBCUDA="+lib, "CUEMU_CLOCK="+filepath.Join(t.TempDir(), "clock.json"))
	if there {
		b := newBench(t)
		b.h[0][0] = 1
		b.s[0].Upload(b.b[0].Span, b.h[0])
		b.s[0].Zero(b.b[1].From(0, 8))
		if err := kernels.CountSet(b.s[0], b.b[1].From(0, 8), b.b[0].Span); err != nil {
			t.Fatal(err)
		}
		b.s[1].Download(b.h[1][:8], b.b[1].From(0, 8))
		if err := b.wait(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := "by count_set on stream 1"; passed || !strings.Contains(out, want) {
		t.Errorf("passed: %v, want %q in\n%s", passed, want, out)
	}
}
