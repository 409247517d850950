package view

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/ngff"
	"strata/pkg/view"
)

// opener puts a program in place of xdg-open that notes what it is given and then runs like a browser. It returns
// the variables for it and its notes: its process id and its arguments.
func opener(t *testing.T) (env []string, notes func() (pid int, args string)) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "notes")
	script := "#!/bin/sh\nprintf '%s\\n' $$ \"$*\" >\"$NOTES.new\"\nmv \"$NOTES.new\" \"$NOTES\"\nexec sleep 100\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "NOTES=" + file}, func() (int, string) {
		for range 1500 {
			if b, err := os.ReadFile(file); err == nil {
				id, args, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
				pid, err := strconv.Atoi(id)
				if err != nil {
					t.Fatal(err)
				}
				return pid, args
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal("xdg-open was not called")
		return 0, ""
	}
}

// commandLines returns the command lines of all processes.
func commandLines(t *testing.T) (text string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, _ := os.ReadFile(name) // it may have ended
		text += strings.ReplaceAll(string(b), "\x00", " ") + "\n"
	}
	return text
}

// With --open, the page loads while the program that opens the browser runs, its token is on no command line, and
// what is on one leads to the page once. That program ends with the viewer.
func TestOpens(t *testing.T) {
	env, notes := opener(t)
	record := filepath.Join(t.TempDir(), "r.json")
	page, cmd, messages := serveProcess(t, env, "../../../tests/golden/inputs/m_u16_v3shard.zip", "--open", "--report", record)
	pid, target := notes()
	token := strings.Split(page, "/")[3]
	if strings.Contains(target, token) || strings.Contains(commandLines(t), token) {
		t.Errorf("the token is on a command line: %s", target)
	}
	if code, b := get(t, page); code != http.StatusOK || !strings.HasPrefix(string(b), "<!doctype html>") {
		t.Errorf("the page: %d %.100q", code, b)
	}
	address := target
	if !strings.HasPrefix(target, "http://") { // a file that leads there
		b, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		_, address, _ = strings.Cut(string(b), "url=")
		address, _, _ = strings.Cut(address, `"`)
	}
	for _, want := range []int{http.StatusOK, http.StatusGone} {
		if code, b := get(t, address); code != want || (code == http.StatusOK) != strings.HasPrefix(string(b), "<!doctype html>") {
			t.Errorf("%s: %d %.100q, want %d", address, code, b, want)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was interrupted
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("xdg-open still runs: %v", err)
	}
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{token, "/open/"} {
		if strings.Contains(string(b), secret) || strings.Contains(messages.String(), secret) {
			t.Errorf("%q is in the record or in a message: %s", secret, messages.String())
		}
	}
}

// Where nobody tells whose a connection is, a file that only the user can read leads to the page. It goes when it
// has been used, or with the viewer.
func TestEntranceFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	v := view.New(view.Options{Overlay: -1, Mem: 1 << 20, Workers: 2, Token: view.NewToken(),
		Open: func(context.Context, string) (*ngff.Image, error) { return nil, os.ErrNotExist }})
	defer v.Close()
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	var closes []func()
	for range 2 {
		target, close, err := entrance(v, at, false)
		if err != nil {
			t.Fatal(err)
		}
		closes = append(closes, close)
		for name, mode := range map[string]os.FileMode{target: 0o600, filepath.Dir(target): 0o700 | os.ModeDir} {
			if info, err := os.Stat(name); err != nil || info.Mode() != mode {
				t.Errorf("%s: %v %v, want mode %v", name, info, err, mode)
			}
		}
	}
	files, err := filepath.Glob(os.Getenv("TMPDIR") + "/*/open.html")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	closes[0]()
	last, err := filepath.Glob(os.Getenv("TMPDIR") + "/*/open.html")
	if err != nil || len(last) != 1 {
		t.Fatal(last, err)
	}
	b, err := os.ReadFile(last[0])
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(string(b), "url=http://127.0.0.1:8080")
	address, _, _ = strings.Cut(address, `"`)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080"+address, nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site") // as from a file
	v.ServeHTTP(w, r)
	if w.Code != http.StatusSeeOther {
		t.Errorf("%s: %d", address, w.Code)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// What a program says becomes one short line.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{"": "", " a\n\n b\t\x1b[31mc\xff ": "a b [31mc", strings.Repeat("é", 400): strings.Repeat("é", mostWords) + "…"} {
		if got := line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
