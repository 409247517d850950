package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretAddresses all hold the secret S3CR3T; some do not parse. server is one that answers.
func secretAddresses(server string) []string {
	answers := strings.TrimPrefix(server, "http://")
	return []string{
		"http://me:S3CR3T@" + answers + "/x.zarr", "HTTP://me:S3CR3T@" + answers + "/none.zip", "http://S3CR3T@" + answers + "/none",
		server + "/x.zarr?Signature=S3CR3T", server + "/none?S3CR3T", server + "/none.zip?token=S3CR3T", server + "/flat.zip/a//b?t=S3CR3T",
		"http://me:S3CR3T@127.0.0.1:99999/a", "http://me:S3CR3T@127.0.0.1:port/a", "http://me:S3CR3T/@host/a", "http://me:S3CR3T %@host/a",
		"http://me:%S3CR3T@host/a", "http:/me:S3CR3T@host/a", "http://me:S3CR3T@/a", "file://me:S3CR3T@host/a", "gs://me:S3CR3T@host/a",
		"s3://key:S3CR3T@bucket/x", "S3://key:S3CR3T@bucket/x.zip", "s3://key:S3CR3T/@bucket/x", "s3://key:S3CR3T@b/x", "s3://bucket/x?S3CR3T",
		"s3://bucket/x?X-Amz-Signature=S3CR3T", "s3://bucket/x?%S3CR3T", "s3://bucket/x?anonymous=S3CR3T", "s3://bucket/a//b?x=S3CR3T",
		"s3://bucket/x?endpoint=http://me:S3CR3T@host", "s3://bucket/x?endpoint=http://me:S3CR3T/@host",
	}
}

// noSecret fails if a text that was made of an address holds its secret.
func noSecret(t *testing.T, s string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(text, "S3CR3T") {
			t.Errorf("%s: %s", s, text)
		}
	}
}

func TestOpenURL(t *testing.T) {
	node := map[string][]byte{"zarr.json": []byte("{}"), "0/zarr.json": []byte("{}")}
	under := func(prefix string, extra ...string) map[string][]byte {
		m := map[string][]byte{}
		for k, v := range node {
			m[prefix+k] = v
		}
		for _, k := range extra {
			m[k] = []byte("x")
		}
		return m
	}
	dir := t.TempDir()
	write := func(name string, m map[string][]byte) {
		if err := os.WriteFile(filepath.Join(dir, name), zipBytes(t, m, zipMixed), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("flat.zip", node)
	write("top.ozx", under("x.zarr/"))
	write("no extension", under("x.zarr/"))
	write("mac.zip", under("x.zarr/", "__MACOSX/._x.zarr"))
	write("two.zip", under("x.zarr/", "y.zarr/zarr.json"))
	write("junk.zip", map[string][]byte{"x/readme": nil})
	write("file.zip", map[string][]byte{"x": nil})
	if err := os.WriteFile(filepath.Join(dir, "image.tif"), []byte("II*"), 0o666); err != nil {
		t.Fatal(err)
	}
	f := Folder(filepath.Join(dir, "x.zarr"))
	for k, v := range node {
		if err := f.Put(bg, k, v); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(fileServer(dir))
	defer srv.Close()

	for _, c := range []struct{ name, key string }{
		{"/x.zarr", ""}, {"/x.zarr/", ""}, {"/x.zarr/0", ""},
		{"/flat.zip", ""}, {"/flat.zip/", ""}, {"/flat.zip/0", "0"}, {"/flat.zip/0/", "0"},
		{"/top.ozx", "x.zarr"}, {"/top.ozx/x.zarr/0", "x.zarr/0"},
		{"/no extension", "x.zarr"}, {"/mac.zip", "x.zarr"},
		{"/two.zip", ""}, {"/junk.zip", ""}, {"/file.zip", ""},
	} {
		for _, base := range []string{dir, "file://" + dir, "FILE://localhost" + dir, srv.URL} {
			if base == srv.URL && c.name == "/no extension" {
				continue // the address alone does not say that this is a zip file
			}
			address := base + c.name
			st, key, err := OpenURL(bg, address, quick())
			if err != nil || key != c.key {
				t.Errorf("OpenURL(%q): key %q, %v; want %q", address, key, err, c.key)
				continue
			}
			b, err := st.Get(bg, Join(key, "zarr.json"), nil, 100)
			if has := !strings.Contains("/two.zip /junk.zip /file.zip", c.name); has != (err == nil && bytes.Equal(b, []byte("{}"))) {
				t.Errorf("OpenURL(%q): %q, %v", address, b, err)
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}

	for _, c := range []struct{ address, want string }{
		{dir + "/none", "no such file"}, {dir + "/none/at/all", "none/at/all"}, {"none", "no such file"}, {dir + "/x.zarr/1", "no such file"},
		{dir + "/image.tif", "want Zarr in a folder or a zip file"}, {dir + "/image.tif/0", "want Zarr in a folder or a zip file"},
		{dir + "/flat.zip/../x", "invalid key"}, {"", "empty path"}, {"gs://bucket/x", "no store for gs:// addresses"},
		{"file://elsewhere/x", "want file:///path"}, {"http://", "no host"}, {"http://a b/", "invalid character"},
		{srv.URL + "/none.zip", "404"}, {srv.URL + "/flat.zip/a//b", "invalid key"},
	} {
		st, _, err := OpenURL(bg, c.address, quick())
		if err == nil {
			st.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("OpenURL(%q): %v, want %q", c.address, err, c.want)
		}
	}
	if _, _, err := OpenURL(bg, dir+"/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := OpenURL(bg, srv.URL+"/none.zip", quick()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, s := range secretAddresses(srv.URL) {
		st, key, err := OpenURL(bg, s, quick())
		if err == nil {
			_, err = st.Get(bg, Join(key, "zarr.json"), nil, -1)
			noSecret(t, s, st.Location("a b"), fmt.Sprint(st.Close()))
		}
		noSecret(t, s, fmt.Sprint(err), "")
		if _, err := OpenFile(bg, s+"/file", quick()); err != nil {
			noSecret(t, s, err.Error(), "")
		}
	}
	t.Chdir(dir)
	for _, name := range []string{"x.zarr", "./x.zarr", "flat.zip", "flat.zip/0"} {
		st, _, err := OpenURL(bg, name)
		if err != nil {
			t.Errorf("OpenURL(%q): %v", name, err)
			continue
		}
		st.Close()
	}
}
