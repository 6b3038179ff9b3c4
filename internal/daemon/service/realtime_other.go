//go:build !linux

package service

import "errors"

// RealTime is for Linux alone.
func RealTime() error { return errors.New("--realtime: this is not Linux") }
