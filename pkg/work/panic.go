package work

import (
	"fmt"
	"runtime/debug"
)

// Panic is the error that a panic becomes: a bug of the program, whatever the input. It carries the stack of
// the goroutine that panicked.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns a message that reports a bug and the value of the panic.
func (p *Panic) Error() string { return fmt.Sprintf("this is a bug: %v", p.Value) }

// Unwrap returns the panic's value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Guard calls f and returns its error; a panic of f becomes a [*Panic]. A *Panic that another goroutine
// passed on keeps its stack.
func Guard(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Panic:
			err = r
		default:
			err = &Panic{r, debug.Stack()}
		}
	}()
	return f()
}
