package zarrtool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/npy"
	"strata/tests/clitest"
	"strata/tests/tiffcorpus"
)

// catPage runs zarr-tool cat on a page and returns its samples.
func catPage(t *testing.T, program, file string, args ...string) (npy.Header, []byte, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.npy")
	var stderr bytes.Buffer
	cmd := exec.Command(program, append([]string{"cat", file, "-o", out, "-q"}, args...)...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s %v: failed and left an output", file, args)
		}
		return npy.Header{}, nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(b)
	h, err := npy.ReadHeader(r)
	if err != nil {
		t.Fatal(err)
	}
	return h, b[len(b)-r.Len():], nil
}

// TestTIFFCorpus reads every page of the TIFF corpus by zarr-tool cat --page.
func TestTIFFCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	program := clitest.Program(t, "zarr-tool")
	for _, c := range tiffcorpus.Files(t) {
		file := tiffcorpus.Write(t, c.Name)
		check := func(p tiffcorpus.Page, args ...string) {
			h, b, err := catPage(t, program, file, args...)
			if err != nil {
				if c.Group == "optional codec" && exitOf(err) == 3 && (strings.Contains(err.Error(), "not supported") || strings.Contains(err.Error(), "libopenjp2")) {
					return
				}
				t.Errorf("%s %v: %v", c.Name, args, err)
				return
			}
			if h.Type.Typestr() != p.Expect.DType || !slices.Equal(h.Shape, p.Expect.Shape) {
				t.Errorf("%s %v: %v of %s, want %v of %s", c.Name, args, h.Shape, h.Type.Typestr(), p.Expect.Shape, p.Expect.DType)
				return
			}
			p.Expect.Compare(t, c, b)
		}
		for i, p := range c.Pages {
			check(p, "--page", fmt.Sprint(i))
			for k, s := range p.Sub {
				check(s, "--page", fmt.Sprint(i), "--sub_ifd", fmt.Sprint(k))
			}
		}
	}
}

func exitOf(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return -1
}

// mustFail are the broken files of which page 0 cannot be read whole.
var mustFail = []string{"empty", "magic", "version", "header_only", "big_offsetsize", "ifd_eof", "ifd_zero", "ifd_in_header", "trunc_ifd",
	"count_huge", "count_huge_big", "entries_huge_big", "count_short", "dims_huge", "width_zero", "tile_zero", "tile_huge", "bits_0", "bits_17", "samples_65535",
	"compression_unknown", "tile_offset_eof", "tile_offset_wrap", "tile_count_lie_small", "zlib_corrupt", "jpeg_size_lie", "jpeg_trunc", "pred3_on_int", "type_unknown"}

// TestTIFFNegatives reads broken files: exit 3 and one line that names the file, or the pixels that are there.
func TestTIFFNegatives(t *testing.T) {
	program := clitest.Program(t, "zarr-tool")
	for _, c := range tiffcorpus.Negatives(t) {
		file := tiffcorpus.Write(t, c.Name)
		_, _, err := catPage(t, program, file, "--page", "0", "--mem", "256M")
		name := strings.TrimSuffix(filepath.Base(c.Name), ".tif")
		if err == nil {
			if slices.Contains(mustFail, name) {
				t.Errorf("%s (%s): read; must: %s", c.Name, c.Why, c.Must)
			}
			continue
		}
		text := strings.TrimSpace(err.Error())
		if code := exitOf(err); code != 3 || !strings.Contains(text, filepath.Base(c.Name)) || strings.Contains(text, "this is a bug") {
			t.Errorf("%s: exit %d: %s", c.Name, code, text)
		}
	}
}
