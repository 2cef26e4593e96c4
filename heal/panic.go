package heal

import (
	"fmt"
	"runtime/debug"

	ninelives "github.com/ninelives-ai/ninelives"
)

// PanicError is the cause of the fault of an attempt in which a Model panicked:
// that attempt has failed, and the call goes on. errors.As finds it. What the
// consumer of a stream panics with is its own and passes through.
type PanicError struct {
	// Value is what was panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

// Error is one line; the stack is left out.
func (e *PanicError) Error() string {
	return "the attempt panicked: " + oneLine(fmt.Sprint(e.Value), 200)
}

// panicked is the fault of an attempt that panicked with value.
func panicked(value any) *ninelives.Fault {
	e := &PanicError{Value: value, Stack: debug.Stack()}
	return &ninelives.Fault{Class: ninelives.ClassUnknown, Message: e.Error(), Err: e}
}
