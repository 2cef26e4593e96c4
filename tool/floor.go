package tool

// floorPath says why nobody may touch a place in this way; empty if they may.
func (p Permissions) floorPath(kind NeedKind, l place) string { return "" }
