package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Admin are the options of the admin side, which answers over HTTP.
type Admin struct {
	Addr, Advertise string
	Socket          string
	TokenFile       string
	TokenReads      bool
	Open            []string // of admin.Openable
	socketMode      string
}

// validate returns every mistake; exposed addresses are one unless there is TLS, or none is
// wanted.
func (a *Admin) validate(loopbackOnly bool) (errs []error) {
	if _, err := a.SocketMode(); err != nil {
		errs = append(errs, err)
	}
	if a.TokenReads && a.TokenFile == "" {
		errs = append(errs, errors.New("--admin-token-reads is of no use without --"+TokenFlag))
	}
	for _, topic := range a.Open {
		if !slices.Contains(admin.Openable, topic) {
			errs = append(errs, fmt.Errorf("--admin-open is %q, but must be some of %s", topic,
				strings.Join(admin.Openable, ", ")))
		}
	}
	for _, o := range [][2]string{{"admin-addr", a.Addr}, {"advertise-admin", a.Advertise}} {
		if flag, addr := o[0], o[1]; loopbackOnly && addr != "" && !admin.IsHere(addr) {
			errs = append(errs, fmt.Errorf("--%s is %s, where other machines may reach it without TLS, "+
				"but must be on loopback or unix:PATH: otherwise make certificates with 'bmqnode certs "+
				"--dir DIR NODE...' and set --%s, or --insecure", flag, addr, TLSFlag))
		}
	}
	return errs
}

// SocketMode is the permissions of the socket of the admin side.
func (a *Admin) SocketMode() (fs.FileMode, error) {
	mode, err := strconv.ParseUint(a.socketMode, 8, 32)
	if err != nil || mode > 0o777 {
		return 0, fmt.Errorf("--admin-socket-mode is %q, but must be octal permissions "+
			"such as 0600 or 0660", a.socketMode)
	}
	return fs.FileMode(mode), nil
}
