package view

import (
	"bufio"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An Entrance is an address that leads to the page once. It is for programs that open a browser: their command
// lines, which other users can read, need not hold the token.
type Entrance struct {
	// SameUser opens the entrance only to connections of the user who runs the viewer, as the system's table
	// of connections tells ([TellsUsers]).
	SameUser bool
	// Used is called when the entrance has been used.
	Used func()

	nonce string
	mu    sync.Mutex
	used  bool
	told  bool
}

// entrancePath begins the address of the entrance. It is too short for a token.
const entrancePath = "open"

// Enter adds an entrance to the viewer and returns its path below the viewer's address. It must be called before Serve.
func (v *Viewer) Enter(e *Entrance) (path string) {
	e.nonce = NewToken()
	v.entrance = e
	return "/" + entrancePath + "/" + e.nonce
}

// enter answers a request for the entrance.
func (v *Viewer) enter(w http.ResponseWriter, r *http.Request, nonce string) {
	e := v.entrance
	if e == nil || subtle.ConstantTimeCompare([]byte(nonce), []byte(e.nonce)) != 1 {
		v.unknown(w)
		return
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
		return
	}
	if e.SameUser {
		if foreignSite(r) { // a page of somebody who has read the command line
			http.Error(w, "a page elsewhere does not open the viewer", http.StatusForbidden)
			return
		}
		uid, err := requestUser(r)
		if err != nil || uid != os.Geteuid() {
			e.refuse(v, uid, err)
			http.Error(w, "this address is for the user who started view: open the one that view printed", http.StatusForbidden)
			return
		}
	}
	if !e.use() {
		http.Error(w, "this address was used already: open the one that view printed", http.StatusGone)
		return
	}
	http.Redirect(w, r, "/"+v.o.Token+"/", http.StatusSeeOther)
}

// use invalidates the entrance, and reports whether it was valid.
func (e *Entrance) use() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.used {
		return false
	}
	e.used = true
	if e.Used != nil {
		e.Used()
	}
	return true
}

// refuse logs the first connection that is not let in.
func (e *Entrance) refuse(v *Viewer, uid int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told || v.o.Warn == nil {
		return
	}
	e.told = true
	if err != nil {
		v.o.Warn("somebody asked for the page of --open, and was refused: %v", err)
		return
	}
	v.o.Warn("user %d of this machine asked for the page of --open, and was refused", uid)
}

// unmapped is the user id that Linux shows for users whom this process's namespace does not have.
const unmapped = 65534

// TellsUsers reports whether the system tells which user owns a connection to an address of this machine. It makes a
// connection to try.
func TellsUsers(address net.Addr) bool {
	c, err := net.Dial(address.Network(), address.String())
	if err != nil {
		return false
	}
	defer c.Close()
	uid, err := connectionUser(c.LocalAddr(), c.RemoteAddr())
	return err == nil && uid == os.Geteuid() && uid != unmapped
}

// requestUser returns the user who made the connection of a request.
func requestUser(r *http.Request) (int, error) {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return -1, err
	}
	server, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return -1, fmt.Errorf("%s: no address of this machine's side", r.RemoteAddr)
	}
	return connectionUser(net.TCPAddrFromAddrPort(client), server)
}

// connectionUser returns the user who owns the client's side of a connection within this machine.
func connectionUser(client, server net.Addr) (int, error) {
	from, err := netip.ParseAddrPort(client.String())
	if err != nil {
		return -1, err
	}
	to, err := netip.ParseAddrPort(server.String())
	if err != nil {
		return -1, err
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			return -1, err
		}
		uid, err := tableUser(bufio.NewScanner(f), from, to)
		_ = f.Close() // only read
		if uid >= 0 || err != nil {
			return uid, err
		}
	}
	return -1, fmt.Errorf("%s: not among the connections of this machine", client)
}

// tableUser returns the owner of an open connection in a table as in /proc/net/tcp, or -1.
func tableUser(table *bufio.Scanner, from, to netip.AddrPort) (int, error) {
	const established = "01"
	for table.Scan() {
		// number, local and remote address, state, queues, timer, retransmissions, user, timeout, inode
		f := strings.Fields(table.Text())
		// Without an inode, its process has closed it, and the user is not the owner.
		if len(f) < 10 || f[3] != established || f[9] == "0" || !slices.Contains(tableForms(from), f[1]) || !slices.Contains(tableForms(to), f[2]) {
			continue
		}
		return strconv.Atoi(f[7])
	}
	return -1, table.Err()
}

// tableForms returns an address as in /proc/net/tcp, and as in /proc/net/tcp6: groups of four bytes in the
// machine's order, in hexadecimal.
func tableForms(a netip.AddrPort) (forms []string) {
	address := a.Addr().Unmap()
	wide := address.As16()
	list := [][]byte{wide[:]}
	if address.Is4() {
		list = append(list, wide[12:])
	}
	for _, b := range list {
		text := ""
		for ; len(b) > 0; b = b[4:] {
			text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b))
		}
		forms = append(forms, fmt.Sprintf("%s:%04X", text, a.Port()))
	}
	return forms
}
