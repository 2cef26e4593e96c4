package tui

func (d *driver) lines() error { return nil }
