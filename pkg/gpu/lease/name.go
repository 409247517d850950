package lease

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// entry holds the parts of a file's name, and the state of its lock and its time.
type entry struct {
	uuid    string
	waiting bool
	turn    int64 // order in the queue, from 1 on
	bytes   int64

	file    string
	changed int64 // time of change in ns since 1970
}

// Words of a name for its state.
const (
	queueState = "queue"
	leaseState = "lease"
)

// maxTurn bounds the numbers that a name may hold: the next ones have room.
const maxTurn = 1 << 53

// name returns a new name for an entry.
func (e entry) name() string {
	state := leaseState
	if e.waiting {
		state = queueState
	}
	return fmt.Sprintf("%s.%s.%d.%d.%s", e.uuid, state, e.turn, e.bytes, strconv.FormatUint(rand.Uint64(), 36))
}

// parseName reads a name back.
func parseName(name string) (entry, bool) {
	part := strings.Split(name, ".")
	if len(part) != 5 || !validUUID(part[0]) || part[1] != queueState && part[1] != leaseState || part[4] == "" {
		return entry{}, false
	}
	e := entry{uuid: part[0], waiting: part[1] == queueState, file: name}
	var err error
	if e.turn, err = strconv.ParseInt(part[2], 10, 64); err != nil || e.turn < 1 || e.turn > maxTurn {
		return entry{}, false
	}
	if e.bytes, err = strconv.ParseInt(part[3], 10, 64); err != nil || e.bytes < 1 {
		return entry{}, false
	}
	return e, true
}

// validUUID reports whether a UUID can be part of a name: letters, digits and hyphens.
func validUUID(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}
