package view

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strata/tests/clitest"
	"strata/tests/s3emu"
)

// program runs another program to its end.
func program(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(clitest.Program(t, name), append(args, "-q")...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// serve starts the viewer and returns the address of its page.
func serve(t testing.TB, env []string, in string) string {
	t.Helper()
	page, _, _ := serveProcess(t, env, in)
	return page
}

// serveProcess starts the viewer and returns the address of its page, with that of --neuroglancer on a second line, its
// process, and what that says on standard error, to be read when it has ended.
func serveProcess(t testing.TB, env []string, in string, flags ...string) (page string, cmd *exec.Cmd, messages *bytes.Buffer) {
	t.Helper()
	cmd, messages = exec.Command(clitest.Program(t, "view"), append([]string{in}, flags...)...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = messages
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // it was interrupted
	})
	lines := bufio.NewReader(out)
	for range 1 + strings.Count(strings.Join(flags, " "), "--neuroglancer") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("view %s: %v: %s", in, err, messages.String())
		}
		page += line
	}
	return strings.TrimSpace(page), cmd, messages
}

// get returns what is at an address, and the status.
func get(t testing.TB, address string, header ...string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, b
}

// An image shows the same voxels from a folder, a web server, a bucket and files of other formats. From where it is
// stored as Zarr, other viewers get the same bytes, whole and in ranges.
func TestShowsFromAnywhere(t *testing.T) {
	dir := t.TempDir()
	golden, err := filepath.Abs("../../../tests/golden/inputs/m_u16_v3shard.zip")
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(dir, "m.ome.zarr")
	program(t, nil, "zarr-tool", "reencode", golden, image)
	bucket, stop, err := s3emu.Run("a-key", "a-secret")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	var env []string
	for name, v := range bucket.Environment() {
		env = append(env, name+"="+v)
	}
	program(t, env, "zarr-tool", "reencode", image, "s3://bucket/m.ome.zarr")
	tif, scan := filepath.Join(dir, "m.ome.tif"), filepath.Join(dir, "scan")
	program(t, nil, "zarr-tool", "export", image, tif)
	program(t, nil, "phantom", scan, "--czi", "--tiles", "2,2", "--tile", "2,64,64", "--fill_tissue")
	files, err := filepath.Glob(scan + "/*.czi")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	czi, imported := files[0], filepath.Join(dir, "czi.ome.zarr")
	program(t, nil, "zarr-tool", "import", czi, imported, "--n_levels", "0")
	web := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer web.Close()

	_, chunk := get(t, serve(t, nil, image)+"zarr/0/0/zarr.json")
	for _, c := range []struct {
		as, in string
		zarr   bool
	}{{image, web.URL + "/m.ome.zarr", true}, {image, "s3://bucket/m.ome.zarr", true}, {image, tif, false}, {image, web.URL + "/m.ome.tif", false}, {imported, czi, false}} {
		want, got := serve(t, nil, c.as), serve(t, env, c.in)
		for _, what := range []string{"tile?level=0&plane=xy&at=1&row=0&col=0", "tile?level=0&plane=xz&at=5&row=0&col=0", "value?z=1&y=7&x=9"} {
			code, a := get(t, want+"api/images/0/"+what+dimensions(t, want))
			status, b := get(t, got+"api/images/0/"+what+dimensions(t, got))
			if code != 200 || status != 200 || !bytes.Equal(a, b) {
				t.Errorf("%s of %s: %d, %d bytes; of %s: %d, %d bytes: %.100q", what, c.as, code, len(a), c.in, status, len(b), b)
			}
		}
		code, whole := get(t, got+"zarr/0/0/zarr.json")
		part, some := get(t, got+"zarr/0/0/zarr.json", "Range", "bytes=3-9")
		switch {
		case !c.zarr && code != http.StatusBadRequest:
			t.Errorf("%s: what is not stored as Zarr is served: %d", c.in, code)
		case c.zarr && (code != http.StatusOK || !bytes.Equal(whole, chunk) || part != http.StatusPartialContent || !bytes.Equal(some, chunk[3:10])):
			t.Errorf("%s: %d, %d bytes; a range: %d, %q", c.in, code, len(whole), part, some)
		}
	}
}

// dimensions returns the part of a query that names the first time and channel, of an image that has these.
func dimensions(t *testing.T, page string) string {
	t.Helper()
	_, b := get(t, page+"api/images/0")
	if n := bytes.Count(b[bytes.Index(b, []byte(`"others":`)):bytes.Index(b, []byte(`"channel":`))], []byte(`"name"`)); n > 0 {
		return "&other=0" + strings.Repeat(",0", n-1)
	}
	return ""
}
