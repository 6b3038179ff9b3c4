package testkit

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer is what a process or a logger has written so far, for a test to read.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends to the buffer. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count returns how often text was written.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }
