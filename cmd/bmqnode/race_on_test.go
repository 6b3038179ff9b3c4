//go:build race

package main_test

var buildArgs = []string{"build", "-race"}
