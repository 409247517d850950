// Package s3emu gives tests an S3 server: gofakes3 in a process of its own, behind a
// real socket. What it holds is in its memory.
package s3emu

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Bucket is the bucket that there is.
const Bucket = "bucket"

// Server is a server that runs until the test ends.
type Server struct {
	URL         string // http://127.0.0.1:PORT
	Key, Secret string // "": it takes requests that nobody signed
}

// Start starts a server that checks signatures.
func Start(t testing.TB) *Server { return start(t, "a-key", "a-secret") }

// StartAnonymous starts a server that takes requests from anybody.
func StartAnonymous(t testing.TB) *Server { return start(t, "", "") }

// Environment is what tools need to find the server: Amazon's variables.
func (s *Server) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ACCESS_KEY_ID": s.Key, "AWS_SECRET_ACCESS_KEY": s.Secret, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	}
}

// Use sets the environment of the test's process so.
func (s *Server) Use(t *testing.T) {
	for name, value := range s.Environment() {
		t.Setenv(name, value)
	}
}

func start(t testing.TB, key, secret string) *Server {
	t.Helper()
	s, stop, err := Run(key, secret)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Run starts a server that takes requests signed with a key, or with "" all, until
// stop is called.
func Run(key, secret string) (s *Server, stop func() error, err error) {
	url, stop, err := Process([]string{"CGO_ENABLED=0", "GOFLAGS="},
		"go", "run", "strata/tests/s3emu/server", "-bucket", Bucket, "-key", key, "-secret", secret)
	return &Server{URL: url, Key: key, Secret: secret}, stop, err
}

// Process starts a program that prints its address, http://HOST:PORT, and ends with its
// standard input, which stop closes. env is added to the environment.
func Process(env []string, program string, args ...string) (url string, stop func() error, err error) {
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), env...)
	stdin, err := c.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		stdin.Close()
		late := time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
		defer late.Stop()
		if err := c.Wait(); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		return nil
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !strings.HasPrefix(line, "http://") {
		return "", nil, errors.Join(fmt.Errorf("%s %s says %q where its address was expected", program, strings.Join(args, " "), line), err, stop())
	}
	return strings.TrimSpace(line), stop, nil
}
