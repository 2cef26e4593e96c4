package tool

import "context"

// Restore takes changes back, or does them again.
func (w *Workspace) Restore(ctx context.Context, changes []Change, redo bool) (restored []Change, conflicts []string, err error) {
	return nil, nil, ctx.Err()
}
