// Command server is an in-memory S3 server for tests that checks signatures. It prints its address and ends when
// its standard input is closed.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("s3emu: ")
	key := flag.String("key", "", "access key; none: requests are not signed")
	secret := flag.String("secret", "", "secret of the key")
	bucket := flag.String("bucket", "bucket", "bucket that there is")
	latency := flag.Duration("latency", 0, "time before each answer")
	listen := flag.String("listen", "127.0.0.1:0", "address")
	load := flag.String("load", "", "folder whose files are objects of the bucket")
	flag.Parse()
	if err := serve(*listen, *key, *secret, *bucket, *load, *latency); err != nil {
		log.Fatal(err)
	}
}

// listing lists objects as Amazon does if a request has an empty delimiter: as without one.
type listing struct{ *s3mem.Backend }

func (l listing) ListBucket(ctx context.Context, name string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList, error) {
	if prefix != nil && prefix.Delimiter == "" {
		prefix.HasDelimiter = false
	}
	return l.Backend.ListBucket(ctx, name, prefix, page)
}

// fill creates objects from the files below a folder.
func fill(backend gofakes3.Backend, bucket, folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = backend.PutObject(context.Background(), bucket, filepath.ToSlash(name), map[string]string{}, bytes.NewReader(b), int64(len(b)))
		return err
	})
}

func serve(listen, key, secret, bucket, load string, latency time.Duration) error {
	backend := s3mem.New()
	if err := backend.CreateBucket(context.Background(), bucket); err != nil {
		return err
	}
	if load != "" {
		if err := fill(backend, bucket, load); err != nil {
			return err
		}
	}
	var options []gofakes3.Option
	if key != "" {
		options = append(options, gofakes3.WithV4Auth(map[string]string{key: secret}))
	}
	s3 := gofakes3.New(listing{backend}, options...).Server()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	var conditional sync.Mutex
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		if r.Header.Get("If-None-Match") != "" { // looked at and written in one step, as Amazon does
			conditional.Lock()
			defer conditional.Unlock()
		}
		s3.ServeHTTP(w, r)
	})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
