// Package tidy holds the tests that guard the tree: which package may import
// which, how long files and functions get, what must not be in a source file,
// and whether the pages and the code agree on rules, tests and each other. Each
// check is a function of a file system, so that its own test shows it a small
// tree that breaks the rule. There is nothing to import here.
package tidy
