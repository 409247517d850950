// Command remote serves a folder over HTTP with range requests and delays each answer: the web server for
// benchmarks of distant data. It prints its address and ends when its standard input is closed.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("remote: ")
	dir := flag.String("dir", ".", "folder to serve")
	latency := flag.Duration("latency", 0, "time before each answer")
	flag.Parse()
	if err := serve(*dir, *latency); err != nil {
		log.Fatal(err)
	}
}

func serve(dir string, latency time.Duration) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	files := http.FileServer(http.Dir(dir))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		files.ServeHTTP(w, r)
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
