// Command remote serves a folder over HTTP with range requests and delays each answer: the web server for
// benchmarks of distant data. It prints its address and ends when its standard input is closed. With -log it then
// prints on standard error what was requested: milliseconds from the first request to arrival, to the answer's
// beginning and to its end, the wait number, method, path and range. A request's wait number is one more than the
// highest of those whose answers had begun when it arrived: the number of round trips that it needed.
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
	logged := flag.Bool("log", false, "print what was requested at the end")
	flag.Parse()
	if err := serve(*dir, *latency, *logged); err != nil {
		log.Fatal(err)
	}
}

func serve(dir string, latency time.Duration, logged bool) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	files := http.FileServer(http.Dir(dir))
	var requests record
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered := requests.arrived(r)
		time.Sleep(latency)
		ended := answered()
		files.ServeHTTP(w, r)
		ended()
	})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	if logged {
		requests.print(os.Stderr)
	}
	return nil
}
