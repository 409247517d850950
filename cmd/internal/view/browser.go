package view

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"strata/pkg/view"
	"strata/pkg/work"
)

// Times and sizes of the program that opens a browser.
const (
	outputTime = 200 * time.Millisecond // for its last words, which a browser that it started may keep open
	endTime    = 2 * time.Second        // for its end when the viewer ends
	mostOutput = 4096                   // bytes
	mostWords  = 300                    // characters in a message
)

// entrance returns what to give to the program that opens a browser: the address of a page of one use, which is of
// no use to other users, although they can read command lines. Where the system does not tell whose a connection
// is, it is the path of a file that only this user can read, and that leads to that page. close removes it.
func entrance(v *view.Viewer, l net.Addr, tells bool) (target string, close func(), err error) {
	e := &view.Entrance{SameUser: tells}
	address := "http://" + l.String() + v.Enter(e)
	if e.SameUser {
		return address, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "strata-view-") // mode 0700
	if err != nil {
		return "", nil, err
	}
	close = sync.OnceFunc(func() { _ = os.RemoveAll(dir) }) // what stays leads nowhere
	e.Used = close
	target = filepath.Join(dir, "open.html")
	if err := os.WriteFile(target, []byte(redirect(address)), 0o600); err != nil {
		close()
		return "", nil, err
	}
	return target, close, nil
}

// redirect returns an HTML page that leads to an address.
func redirect(address string) string {
	address = html.EscapeString(address)
	return `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>view</title>` +
		`<meta http-equiv="refresh" content="0; url=` + address + `"><a href="` + address + `">view</a>` + "\n"
}

// browse has the user's browser open a target, and waits for the program that does it, which lives as long as the
// browser where there is no desktop. If ctx ends first, it ends that program.
func browse(ctx context.Context, target string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, target)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C ends the viewer, and not the browser
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	err = cmd.Start()
	_ = w.Close() // the program has its own
	if err != nil {
		return errors.Join(err, r.Close())
	}
	said := work.Async(func() []byte {
		b, _ := io.ReadAll(io.LimitReader(r, mostOutput)) // a deadline, or the end
		_, _ = io.Copy(io.Discard, r)                     // a browser must not wait for a reader
		return b
	})
	err = cmd.Wait()
	if err == nil || ctx.Err() != nil {
		<-ctx.Done()
		_ = r.Close()
		said()
		return nil
	}
	_ = r.SetReadDeadline(time.Now().Add(outputTime)) // pipes have deadlines
	text := said()
	_ = r.Close()
	if words := line(strings.ReplaceAll(string(text), target, "the page")); words != "" {
		return fmt.Errorf("%s: %s", program, words)
	}
	return fmt.Errorf("%s: %w", program, err)
}

// line returns a program's output as one short line.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, " "))
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > mostWords {
		text = string(r[:mostWords]) + "…"
	}
	return text
}
