// Package browser drives a headless Chromium without network access, for tests of pages.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Browser is a running headless Chromium with one page, driven over a pipe.
type Browser struct {
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

// event is a message that Chromium sends on its own.
type event struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Start runs Chromium with its debugging pipe on descriptors 3 and 4. It can reach no host but this machine, and
// ends after at most two minutes.
func Start() (*Browser, error) {
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
	b := &Browser{profile: profile, to: to, in: in, from: bufio.NewReader(in)}
	b.cmd = exec.Command(name, "--headless", "--hide-scrollbars", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir="+profile, "about:blank")
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := errors.Join(b.cmd.Start(), theirIn.Close(), theirOut.Close()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	b.dog = time.AfterFunc(2*time.Minute, func() { _ = b.cmd.Process.Kill() })
	if err := b.attach(); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// Stop ends Chromium and removes its profile.
func (b *Browser) Stop() error {
	b.session = ""
	if b.Call("Browser.close", nil, nil) != nil {
		_ = b.cmd.Process.Kill()
	}
	_ = b.cmd.Wait() // however it ended
	b.dog.Stop()
	return errors.Join(b.to.Close(), b.in.Close(), os.RemoveAll(b.profile))
}

// attach opens a session with a new page.
func (b *Browser) attach() error {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		return err
	}
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.Call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Call sends a command and waits for its answer. Events that arrive before it are kept.
func (b *Browser) Call(method string, params map[string]any, result any) error {
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

// Eval evaluates an expression in the page.
func (b *Browser) Eval(expression string, result any) error {
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
	if err := b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r); err != nil {
		return err
	}
	if r.Exception != nil {
		return fmt.Errorf("in the page: %s %s", r.Exception.Text, r.Exception.Exception.Description)
	}
	return json.Unmarshal(r.Result.Value, result)
}

// Open loads an address and waits until it is loaded.
func (b *Browser) Open(address string) error {
	var result struct {
		ErrorText string `json:"errorText"`
	}
	if err := b.Call("Page.navigate", map[string]any{"url": address}, &result); err != nil {
		return err
	}
	if result.ErrorText != "" {
		return fmt.Errorf("%s: %s", address, result.ErrorText)
	}
	for range 400 {
		state := ""
		if err := b.Eval("document.readyState", &state); err != nil {
			return err
		}
		if state == "complete" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s: still loading", address)
}

// Window sets the size of the window.
func (b *Browser) Window(width, height int) error {
	return b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Screenshot saves the content of the window.
func (b *Browser) Screenshot(name string) error {
	var r struct {
		Data string `json:"data"`
	}
	if err := b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &r); err != nil {
		return err
	}
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(name, png, 0o666)
}

// Noise returns everything logged or thrown, and requests to addresses that begin with none of the expected ones.
func (b *Browser) Noise(expected ...string) (out []string) {
	for _, e := range b.events {
		switch e.Method {
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			out = append(out, "logged: "+string(e.Params))
		case "Network.requestWillBeSent":
			var p struct {
				Request struct {
					URL string `json:"url"`
				} `json:"request"`
			}
			if err := json.Unmarshal(e.Params, &p); err != nil {
				out = append(out, err.Error())
			} else if u := p.Request.URL; !slices.ContainsFunc(append(expected, "data:", "about:blank"), func(e string) bool { return strings.HasPrefix(u, e) }) {
				out = append(out, "asked for: "+u)
			}
		}
	}
	return out
}
