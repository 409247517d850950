//go:build !nocuda

package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strata/pkg/gpu"
	"strata/tests/gputest"
)

var entries = regexp.MustCompile(`\.entry (\w+)\(`)

// entryNames returns the kernels of PTX.
func entryNames(text string) (all []string) {
	for _, m := range entries.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// TestAlone: all kernels can be loaded one by one, and nothing but kernels is left behind: variables and
// functions would have to go with them.
func TestAlone(t *testing.T) {
	all, err := ptx()
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(all, entry)
	rest = entry + rest
	list := entryNames(all)
	if len(list) == 0 || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("kernels %v", list)
	}
	for _, name := range list {
		one, err := alone(all, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := entryNames(one); !slices.Equal(got, []string{name}) || !strings.HasPrefix(one, head) || !strings.HasSuffix(one, "\n}\n") {
			t.Errorf("%s: kernels %v", name, got)
		}
		rest = strings.Replace(rest, strings.TrimPrefix(one, head), "", 1)
	}
	if left := strings.TrimSpace(rest); left != "" {
		t.Errorf("beside its kernels the PTX has %q", left)
	}
	if _, err := alone(entry+"a(\n)\n{\n}\n", "b"); err == nil {
		t.Error("found what is not there")
	}
	if _, err := alone(entry+"a(\n)\n{\n", "a"); err == nil {
		t.Error("found what does not end")
	}
}

// TestPacked: the machine code of each device has all kernels of the PTX, and every packed file stays under the size
// that git holds. That the PTX has all kernels of the sources, tests/cudaemu/build.sh checks.
func TestPacked(t *testing.T) {
	all, err := ptx()
	if err != nil {
		t.Fatal(err)
	}
	want := entryNames(all)
	if len(want) == 0 {
		t.Fatal("the PTX has no kernels")
	}
	section := regexp.MustCompile(`\.text\.(\w+)\x00`)
	for _, f := range families {
		image, err := machine(gpu.Info{Compute: f.compute, Driver: f.driver})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range section.FindAllSubmatch(image, -1) {
			got = append(got, string(s[1]))
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("sm_%d: %d kernels, want %d", f.compute, len(got), len(want))
		}
	}
	list, err := packed.ReadDir("code")
	if err != nil || len(list) != 1+len(families) {
		t.Errorf("%v %v", list, err)
	}
	for _, f := range list {
		if i, err := f.Info(); err != nil || i.Size() > 1e6 {
			t.Errorf("%s: %d bytes, %v", f.Name(), i.Size(), err)
		}
	}
}

// TestFamilies: machine code is for devices of the major version, and drivers that take it.
func TestFamilies(t *testing.T) {
	for i, want := range map[gpu.Info]string{
		{Compute: 70, Driver: 12000}:  "",
		{Compute: 75, Driver: 12000}:  "",
		{Compute: 89, Driver: 12040}:  "",
		{Compute: 103, Driver: 13000}: "",
		{Compute: 121, Driver: 13020}: "",
		{Compute: 62, Driver: 12000}:  "there is no machine code for sm_62",
		{Compute: 110, Driver: 13000}: "there is no machine code for sm_110",
		{Compute: 100, Driver: 12080}: "machine code for sm_100 needs a driver for CUDA 13.0, this is one for 12.8",
	} {
		image, err := machine(i)
		if got := gpu.Reason(err); got != want || (err == nil) != (len(image) > 0) {
			t.Errorf("sm_%d: %d bytes, %q, want %q", i.Compute, len(image), got, want)
		}
	}
}

// TestWithoutCompiler: where machine code fits, nothing is compiled by the driver; where none fits or it is
// refused, all is, and where neither is possible the error says both.
func TestWithoutCompiler(t *testing.T) {
	const variable = "STRATA_TEST_COMPILER"
	want, child := os.LookupEnv(variable)
	if !child {
		gputest.NeedDouble(t)
		for name, c := range map[string]struct{ env, want string }{
			"machine code":           {"CUEMU_NO_JIT=1", ""},
			"refused":                {"CUEMU_FAIL=cuModuleLoadDataEx:1:209", "driver compiles: cuModuleLoadDataEx"},
			"an unknown device":      {"CUEMU_CC=110", "driver compiles: there is no machine code for sm_110"},
			"neither":                {"CUEMU_CC=110 CUEMU_NO_JIT=1", "planes.cu: kernel brighten: cuModuleLoadDataEx: CUDA error 221 (CUDA error 221); the driver compiles it since there is no machine code for sm_110"},
			"a fault of the context": {"CUEMU_FAIL=cuModuleLoadDataEx:1:700s", "CUDA error 700"},
		} {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				cmd := exec.Command(os.Args[0], "-test.run=^TestWithoutCompiler$", "-test.count=1")
				cmd.Env = append(os.Environ(), append(strings.Fields(c.env), variable+"="+c.want, "CUEMU_PTX=")...)
				if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("LEAK")) && !strings.HasSuffix(c.env, "s") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		return
	}
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 1 << 20, Pinned: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	Load(d)
	got := ""
	if _, err := get(d, "planes", "brighten"); err != nil {
		got = err.Error()
	} else if err := Compiled(d); err != nil {
		got = fmt.Sprintf("driver compiles: %v", err)
	}
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := d.Close(); err != nil && !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
}
