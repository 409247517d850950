package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// browser is a running headless Chromium with one page, driven over a pipe.
type browser struct {
	cmd     *exec.Cmd
	profile string
	to      *os.File
	in      *os.File
	from    *bufio.Reader
	dog     *time.Timer
	id      int
	session string
	events  []event
}

// event is what Chromium tells without being asked.
type event struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// start runs Chromium with its debugging pipe on descriptors 3 and 4, no host
// that it could reach, and an end after two minutes at the latest.
func start() (*browser, error) {
	name, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "report-")
	if err != nil {
		return nil, err
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &browser{profile: profile, to: to, in: in, from: bufio.NewReader(in)}
	b.cmd = exec.Command(name, "--headless", "--hide-scrollbars", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir="+profile, "about:blank")
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := errors.Join(b.cmd.Start(), theirIn.Close(), theirOut.Close()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	b.dog = time.AfterFunc(2*time.Minute, func() { _ = b.cmd.Process.Kill() })
	if err := b.attach(); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

// stop ends Chromium and removes its profile.
func (b *browser) stop() error {
	b.session = ""
	if b.call("Browser.close", nil, nil) != nil {
		_ = b.cmd.Process.Kill()
	}
	_ = b.cmd.Wait() // however it ended
	b.dog.Stop()
	return errors.Join(b.to.Close(), b.in.Close(), os.RemoveAll(b.profile))
}

// attach opens a session with a fresh page.
func (b *browser) attach() error {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		return err
	}
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// call sends a command and waits for its answer; events that come before are kept.
func (b *browser) call(method string, params map[string]any, result any) error {
	b.id++
	if params == nil {
		params = map[string]any{}
	}
	m := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return err
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("%s: chromium ended: %w", method, err)
		}
		var answer struct {
			event
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(text[:len(text)-1], &answer); err != nil {
			return err
		}
		switch {
		case answer.ID == 0:
			b.events = append(b.events, answer.event)
		case answer.ID != b.id:
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result != nil:
			return json.Unmarshal(answer.Result, result)
		default:
			return nil
		}
	}
}

// eval evaluates an expression in the page.
func (b *browser) eval(expression string, result any) error {
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r); err != nil {
		return err
	}
	if r.Exception != nil {
		return fmt.Errorf("in the page: %s %s", r.Exception.Text, r.Exception.Exception.Description)
	}
	return json.Unmarshal(r.Result.Value, result)
}
