// Package s3emu provides tests with an S3 server: gofakes3 in a separate process, on a real socket. It keeps its
// objects in memory.
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

// Bucket is the name of the only bucket.
const Bucket = "bucket"

// Server is a server that runs until the test ends.
type Server struct {
	URL         string // http://127.0.0.1:PORT
	Key, Secret string // "": it accepts unsigned requests
}

// Start starts a server that checks signatures.
func Start(t testing.TB) *Server { return start(t, "a-key", "a-secret") }

// StartAnonymous starts a server that accepts unsigned requests.
func StartAnonymous(t testing.TB) *Server { return start(t, "", "") }

// Environment returns the AWS_* variables with which tools find the server.
func (s *Server) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ACCESS_KEY_ID": s.Key, "AWS_SECRET_ACCESS_KEY": s.Secret, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	}
}

// Use sets these variables in the test's process.
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

// Run starts a server until stop is called. It accepts requests signed with the key or, if that is "", all
// requests.
func Run(key, secret string) (s *Server, stop func() error, err error) {
	url, stop, err := Process([]string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"}, // as make has compiled it
		"go", "run", "strata/tests/s3emu/server", "-bucket", Bucket, "-key", key, "-secret", secret)
	return &Server{URL: url, Key: key, Secret: secret}, stop, err
}

// Process starts a program that prints its address, http://HOST:PORT, and ends when stop closes its standard
// input. env is added to the environment.
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
