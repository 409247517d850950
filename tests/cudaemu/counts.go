package cudaemu

import (
	"bufio"
	"encoding/json"
	"os"
)

// Counts is what a launch of a kernel asked of memory: a line of the file that CUEMU_COUNT names, which the
// interpreter (CUEMU_PTX=1) writes. A request is an instruction of a warp; sectors have 32 bytes.
type Counts struct {
	Kernel     string `json:"kernel"`
	Requests   int64  `json:"requests"`   // of global memory
	Loaded     int64  `json:"loaded"`     // sectors, each counted for each request that touches it
	Stored     int64  `json:"stored"`     // likewise
	Atomic     int64  `json:"atomic"`     // likewise
	Least      int64  `json:"least"`      // different sectors that are read, and different ones that are written
	Operations int64  `json:"operations"` // atomics of global memory: the addresses of a request
	Conflicts  int64  `json:"conflicts"`  // and the lanes that share one
	Shared     int64  `json:"shared"`     // accesses to shared memory, in which each bank gives one word of 4 bytes
	Longest    int64  `json:"longest"`    // loads of the thread that has most, one after the other
}

// Sectors returns the sectors of all requests.
func (c Counts) Sectors() int64 { return c.Loaded + c.Stored + c.Atomic }

// ReadCounts reads what CUEMU_COUNT named, launch by launch.
func ReadCounts(file string) (all []Counts, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); ; {
		if !s.Scan() {
			return all, s.Err()
		}
		var c Counts
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}
