package run

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// restart says why and how a process is started again for the rest of its pairs.
type restart struct {
	reason error
	onCPU  bool // the pair that failed is repeated, and all is done on the CPU
}

// batchVariable is the environment variable that hands a batch to a new process after its GPU failed. Its value is the
// descriptor of the file with the batch's state.
const batchVariable = "STRATA_BATCH"

// lowestDescriptor is larger than the descriptors that a supervisor gives its worker.
const lowestDescriptor = 10

// again starts the process anew for the pairs that are not done: a driver that has failed may serve a process no
// more. It returns only when that fails.
func (b *batch) again(why *restart) error {
	fd, err := b.handOver()
	if err != nil {
		return fmt.Errorf("%w (starting again: %v)", why.reason, err)
	}
	variables := []string{batchVariable + "=" + strconv.Itoa(fd)}
	if why.onCPU {
		variables = append(variables, fellBackVariable+"="+Message(oneLine(why.reason)))
	}
	err = again(why.reason, variables...)
	_ = unix.Close(fd)
	return err
}

// handOver writes the state of the batch to a file without a name, and returns a descriptor that the next program of
// this process inherits.
func (b *batch) handOver() (fd int, err error) {
	f, err := unnamed("strata-batch")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := gob.NewEncoder(f).Encode(b); err != nil { // names of files need not be UTF-8, which JSON is
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD, lowestDescriptor)
}

// taken returns the batch that an earlier program of this process has handed over, or nil.
func taken() (*batch, error) {
	text := os.Getenv(batchVariable)
	if text == "" {
		return nil, nil
	}
	_ = os.Unsetenv(batchVariable)
	fd, err := strconv.Atoi(text)
	if err != nil || fd < lowestDescriptor {
		return nil, fmt.Errorf("variable %s: %q is no descriptor: it is for restarts only", batchVariable, text)
	}
	f := os.NewFile(uintptr(fd), "the list of pairs")
	if f == nil {
		return nil, fmt.Errorf("variable %s: %q is no descriptor: it is for restarts only", batchVariable, text)
	}
	defer f.Close()
	b := new(batch)
	err = gob.NewDecoder(f).Decode(b)
	if err == nil && (b.Next < 0 || b.Next > len(b.Pairs)) {
		err = errors.New("wrong content")
	}
	if err != nil {
		return nil, fmt.Errorf("take over the list of pairs after a failure of the GPU: %w", err)
	}
	return b, nil
}

// unnamedFile returns a file that no folder has, in the folder for temporary files.
func unnamedFile(name string) (*os.File, error) {
	f, err := os.CreateTemp("", name+"-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
