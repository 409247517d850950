package zarrtool

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strata/tests/clitest"
)

// bucket serves a folder as public buckets do that may not be listed: an object that is not there is denied, as are
// those of a name. With compress, whole objects come compressed, which nobody asked for.
func bucket(t *testing.T, dir, denied string, compress bool) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.URL.Path)))
		if err != nil || denied != "" && strings.Contains(r.URL.Path, denied) {
			http.Error(w, "AccessDenied", http.StatusForbidden)
			return
		}
		if compress && r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(b) // never fails
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("ETag", `"v1"`)
			b = packed.Bytes()
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// command runs zarr-tool and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	cmd := exec.Command(clitest.Program(t, "zarr-tool"), args...)
	cmd.Dir = t.TempDir()
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// Where a server denies access to what may be absent, metadata are looked for all the same, and chunks count as absent
// on request.
func TestDenied(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"v2/.zgroup": `{"zarr_format":2}`, "v2/.zattrs": `{"multiscales":[{"version":"0.4","axes":[{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space","unit":"micrometer"}],"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1,1]}]}]}]}`,
		"v2/0/.zarray": `{"zarr_format":2,"shape":[2,4],"chunks":[2,2],"dtype":"|u1","order":"C","fill_value":7,"filters":null,"compressor":null,"dimension_separator":"/"}`,
		"v2/0/0/0":     "\x01\x02\x03\x04",
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	open, shut, packed := bucket(t, dir, "", false), bucket(t, dir, "/0/0/", false), bucket(t, dir, "", true)
	const numbers = "1\n2\n7\n7\n3\n4\n7\n7\n"
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"info", []string{"info", open + "/v2"}, 0, []string{"OME-Zarr 0.4 image", "0  array [2 4] uint8"}},
		{"denied chunk", []string{"cat", open + "/v2/0", "--format", "text", "-o", "-"}, 3, []string{"/v2/0/0/1: the server answers 403 Forbidden", "--http_absent_codes 403,404"}},
		{"absent chunk", []string{"cat", open + "/v2/0", "--format", "text", "-o", "-", "--http_absent_codes", "403,404"}, 0, []string{numbers, "1 chunk is missing: ", "warning: the server denied access to "}},
		{"all chunks", []string{"cat", shut + "/v2/0", "--format", "text", "-o", "x.txt", "--http_absent_codes", "403,404"}, 3, []string{"/v2/0: access to every chunk is denied"}},
		{"nothing", []string{"info", open + "/v3"}, 3, []string{"/v3/zarr.json: the server answers 403 Forbidden", "access to all that may be here is denied, or nothing is"}},
		{"404 is not listed", []string{"cat", open + "/v2/0", "--format", "text", "-o", "-", "--http_absent_codes", "404"}, 3, []string{"403 Forbidden"}},
		{"no code", []string{"cat", open + "/v2/0", "-o", "-", "--http_absent_codes", "never"}, 2, []string{"--http_absent_codes"}},
		{"compressed", []string{"cat", packed + "/v2/0", "--format", "text", "-o", "-", "--region", ":,0:2"}, 0, []string{"1\n2\n3\n4\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, code := command(t, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, text)
			}
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}
