// Package tidy holds the tests that guard the tree: which package may import
// which, how long files and functions get, what must not be in a source file,
// and whether the pages and the code agree on rules, tests and each other. Most
// rules are in one table, each with a small tree that breaks it. There is nothing
// to import here.
package tidy
