//go:build !nocuda

package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLibraries(t *testing.T) {
	if !apart(t, "CUEMU_DRIVER=12040", "STRATA_LIBCUFILE=/nonexistent/libcufile.so", "STRATA_LIBNVCOMP=libc.so.6") {
		return
	}
	l := Libraries()
	if len(l) != 3 || l[0].Version != "12.4" || l[0].Reason != "" || !filepath.IsAbs(l[0].File) {
		t.Errorf("driver: %+v", l)
	}
	if l[1].File != "" || l[1].Version != "" || !strings.Contains(l[1].Reason, "/nonexistent/libcufile.so") {
		t.Errorf("cuFile: %+v", l[1])
	}
	if l[2].Name != "libc.so.6" || l[2].Reason != "it has no nvcompGetProperties" {
		t.Errorf("nvCOMP: %+v", l[2])
	}
}

func TestLibraryTooOld(t *testing.T) {
	if !apart(t, "CUEMU_DRIVER=11080") {
		return
	}
	if l := Libraries()[0]; l.Version != "11.8" || !strings.Contains(l.Reason, "needed is 12.0") || l.File == "" {
		t.Errorf("%+v", l)
	}
}

// Where the real libraries are (STRATA_TEST_LIBCUFILE, STRATA_TEST_LIBNVCOMP), they
// say their versions though there is no device.
func TestRealLibraries(t *testing.T) {
	cufile, nvcomp := os.Getenv("STRATA_TEST_LIBCUFILE"), os.Getenv("STRATA_TEST_LIBNVCOMP")
	if cufile == "" || nvcomp == "" {
		t.Skip("STRATA_TEST_LIBCUFILE and STRATA_TEST_LIBNVCOMP do not name NVIDIA's libraries")
	}
	if !apart(t, "STRATA_LIBCUFILE="+cufile, "STRATA_LIBNVCOMP="+nvcomp) {
		return
	}
	l := Libraries()
	for i, file := range []string{cufile, nvcomp} {
		if got := l[1+i]; got.Reason != "" || got.Version == "" || filepath.Base(got.File) != filepath.Base(file) {
			t.Errorf("%+v", got)
		}
		t.Logf("%+v", l[1+i])
	}
}
