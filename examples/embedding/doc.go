// Package embedding is the code of docs/embedding.md. Each piece between a line
// "// snippet: name" and a line "// end" is on that page, word for word; the tests
// here demand it, and run every piece.
package embedding
