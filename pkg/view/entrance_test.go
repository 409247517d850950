package view

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
)

// entered starts a viewer with an entrance and returns the entrance's address and what the viewer logs.
func entered(t *testing.T, e *Entrance) (address string, said *[]string) {
	t.Helper()
	v, said := folderViewer(t)
	path := v.Enter(e)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if e.SameUser && !TellsUsers(l.Addr()) {
		t.Skip("this system does not tell whose a connection is")
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- v.Serve(running, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + path, said
}

// dial connects to the server of an address.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.Split(address, "/")[2])
	must(t, err)
	return c
}

// ask sends a request and returns the status and the place that it leads to.
func ask(t *testing.T, method, address, site string) (code int, location string) {
	t.Helper()
	return askOver(t, dial(t, address), method, address, site)
}

// askOver sends a request over a connection.
func askOver(t *testing.T, over net.Conn, method, address, site string) (code int, location string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	must(t, err)
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return over, nil }}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := c.Do(r)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.Header.Get("Referrer-Policy") != "no-referrer" || answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Header.Get("Cross-Origin-Resource-Policy") == "" {
		t.Errorf("headers: %v", answer.Header)
	}
	return answer.StatusCode, answer.Header.Get("Location")
}

// The entrance leads to the page once. Only a request that may use it does.
func TestEntrance(t *testing.T) {
	for _, same := range []bool{true, false} {
		uses := 0
		address, said := entered(t, &Entrance{SameUser: same, Used: func() { uses++ }})
		other := address[:len(address)-1] + "x"
		type answer struct {
			method, address, site string
			code                  int
		}
		list := []answer{{"GET", other, "", 404}, {"GET", address + "/", "", 404}, {"HEAD", address, "", 405}, {"POST", address, "", 405}}
		if same { // a file is another site
			list = append(list, answer{"GET", address, "cross-site", 403}, answer{"GET", address, "same-site", 403})
		}
		for _, c := range append(list, answer{"GET", address, "none", 303}, answer{"GET", address, "", 410}, answer{"GET", address, "none", 410}) {
			code, location := ask(t, c.method, c.address, c.site)
			if code != c.code || (location == "/"+token+"/") != (code == 303) {
				t.Errorf("%s %s %s: %d %q, want %d", c.method, c.address, c.site, code, location, c.code)
			}
		}
		if uses != 1 || len(*said) != 0 {
			t.Errorf("used %d times; messages: %q", uses, *said)
		}
	}
	v, _ := folderViewer(t)
	if w := get(t, v, "/../open/"); w.Code != http.StatusNotFound {
		t.Errorf("without an entrance: %d", w.Code)
	}
}

// Another user who has read the address is refused and does not use it up.
func TestEntranceOfOthers(t *testing.T) {
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root can be several users")
	}
	address, said := entered(t, &Entrance{SameUser: true})
	for range 2 {
		var over net.Conn
		asOther(t, func() { over = dial(t, address) })
		if code, location := askOver(t, over, "GET", address, ""); code != http.StatusForbidden || location != "" {
			t.Errorf("another user: %d %q, want 403", code, location)
		}
	}
	if code, _ := ask(t, "GET", address, ""); code != http.StatusSeeOther {
		t.Errorf("the user: %d, want 303", code)
	}
	if len(*said) != 1 || (*said)[0] != "user 65533 of this machine asked for the page of --open, and was refused" {
		t.Errorf("messages: %q", *said)
	}
}

// The owner of a connection is the one that the system's table gives, while it is open.
func TestTableUser(t *testing.T) {
	if tableForms(netip.MustParseAddrPort("127.0.0.1:8080"))[1] != "0100007F:1F90" {
		t.Skip("the tables of this test are those of a little-endian machine")
	}
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	from, to := netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:8080")
	for name, c := range map[string]struct {
		row  string
		want int
	}{
		"open":          {"   0: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4 30 10 -1", 1000},
		"of IPv6":       {"   0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 4711 1", 1001},
		"other side":    {"   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1", -1},
		"another port":  {"   0: 0100007F:C351 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1", -1},
		"closed by one": {"   0: 0100007F:C350 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1", -1},
		"orphan":        {"   0: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 0 1", -1},
		"waits":         {"   0: 0100007F:C350 0100007F:1F90 06 00000000:00000000 03:00001234 00000000     0        0 0 3", -1},
		"cut":           {"   0: 0100007F:C350 0100007F:1F90 01", -1},
	} {
		if got, err := tableUser(bufio.NewScanner(strings.NewReader(head+c.row+"\n")), from, to); got != c.want || err != nil {
			t.Errorf("%s: %d %v, want %d", name, got, err, c.want)
		}
	}
}
