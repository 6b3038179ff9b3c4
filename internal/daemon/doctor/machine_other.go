//go:build !linux

package doctor

// What is asked of Linux is not known elsewhere.
func freeSpace(string) (bytes uint64, known bool) { return 0, false }
func clockGoesOn() bool                           { return false }
func fileLimit() (limit uint64, known bool)       { return 0, false }

// PortOwner names the process that holds a port; "": it is not known.
func PortOwner(_, _ string) string { return "" }
