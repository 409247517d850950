package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"strata/tests/s3emu"
)

// One file of a web server or a bucket is read by its address.
func TestOpenFile(t *testing.T) {
	bg := context.Background()
	content := bytes.Repeat([]byte("0123456789"), 10000)
	paths := make(chan string, 10)
	web := serve(t, func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.RequestURI()
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(content))
	})
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/folder")
	if err := s.Put(bg, "a file.bin", content); err != nil {
		t.Fatal(err)
	}
	for address, path := range map[string]string{
		web.URL + "/a/b%20c.bin?signature=secret&x=1":   "/a/b%20c.bin?signature=secret&x=1",
		web.URL + "/x.zip":                              "/x.zip",
		"s3://" + s3emu.Bucket + "/folder/a%20file.bin": "",
	} {
		o, err := OpenFile(bg, address, quick())
		if err != nil {
			t.Error(err)
			continue
		}
		got := make([]byte, 70)
		if n, err := o.ReadAt(bg, got, 12345); o.Size() != 100000 || n != 70 || err != nil || !bytes.Equal(got, content[12345:12415]) {
			t.Errorf("%s: %d bytes, %d read, %v", address, o.Size(), n, err)
		}
		if n, err := o.ReadAt(bg, got, 99990); n != 10 || err != io.EOF {
			t.Error(n, err)
		}
		if path != "" {
			if asked := <-paths; asked != path {
				t.Errorf("%s is asked for as %s", address, asked)
			}
			<-paths
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenFileErrors(t *testing.T) {
	bg := context.Background()
	web := serve(t, status(http.StatusNotFound))
	s3emu.Start(t).Use(t)
	for address, want := range map[string]string{
		"/local/file":                           "/local/file: not an address of a file on a server: want http://, https:// or s3://",
		"ftp://host/file":                       "ftp://host/file: not an address of a file on a server: want http://, https:// or s3://",
		"https:///file":                         "https:///file: no host or bucket in the address",
		"https://host/folder/?token=secret":     "https://host/folder/?token=xxxxx: names no file: want it behind the last slash",
		"https://host?token=secret":             "https://host?token=xxxxx: names no file: want it behind the last slash",
		"s3://bucket":                           "s3://bucket: names no file: want it behind the last slash",
		"s3://b/file":                           `s3://b/: "b" is not the name of a bucket`,
		"https://host/%zz?token=secret":         `https://host/%zz?token=xxxxx: invalid URL escape "%zz"`,
		web.URL + "/none?token=secret":          web.URL + "/none: the server answers 404 Not Found: file does not exist",
		"s3://" + s3emu.Bucket + "/folder/none": "s3://" + s3emu.Bucket + "/folder/none: the server answers 404 Not Found: file does not exist",
	} {
		o, err := OpenFile(bg, address, quick())
		if err == nil {
			t.Errorf("%s: opened", address)
			_ = o.Close()
		} else if !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(want, "404") != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
