package config

import (
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

// validate adds every mistake. With loopbackOnly, an address that other machines reach is one.
func (a *Admin) validate(wrong *Mistakes, loopbackOnly bool) {
	_, err := a.SocketMode()
	*wrong = append(*wrong, err)
	wrong.Want(!a.TokenReads || a.TokenFile != "",
		"--admin-token-reads is of no use without --"+TokenFlag)
	for _, topic := range a.Open {
		wrong.Want(slices.Contains(admin.Openable, topic), "--admin-open is %q, but must be some of %s",
			topic, strings.Join(admin.Openable, ", "))
	}
	for _, o := range [][2]string{{"admin-addr", a.Addr}, {"advertise-admin", a.Advertise}} {
		wrong.Want(!loopbackOnly || o[1] == "" || admin.IsHere(o[1]), "--%s is %s, where other machines "+
			"may reach it without TLS, but must be on loopback or unix:PATH: otherwise make certificates "+
			"with 'bmqnode certs --dir DIR NODE...' and set --%s, or --insecure", o[0], o[1], TLSFlag)
	}
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
