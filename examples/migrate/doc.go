// Package migrate is the code of docs/migrate.md, except what needs Kubernetes. Each piece between
// a line "// snippet: name" and a line "// end" is on that page, word for word; the tests here
// demand it, and run every piece that leads.
package migrate
