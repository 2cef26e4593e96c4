package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"
)

// readFile reads a file that a flag names.
func readFile(ctx context.Context, flag, name string, limit int64) ([]byte, error) {
	data, err := readAll(ctx, name, limit)
	var path *fs.PathError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &path):
		return nil, usagef("%s %s cannot be read: %v", flag, name, path.Err)
	case err != nil:
		return nil, usagef("%s %s cannot be read: %v", flag, name, err)
	case int64(len(data)) > limit:
		return nil, usagef("%s %s is larger than %d MB", flag, name, limit>>20)
	case len(data) == 0:
		return nil, usagef("%s %s is empty", flag, name)
	}
	return data, nil
}

// readAll reads at most one byte more than limit. A pipe, as of the shell's
// <(…), is read until the context ends; one that nobody writes to is empty.
func readAll(ctx context.Context, name string, limit int64) ([]byte, error) {
	flags := os.O_RDONLY
	if runtime.GOOS != "windows" {
		flags |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Now()) })
	defer stop()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
