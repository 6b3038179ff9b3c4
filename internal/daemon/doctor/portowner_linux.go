package doctor

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PortOwner names the process that holds a port, as "process 123 (name)"; "" if
// nobody does, or if this user may not see who. network is tcp or udp.
func PortOwner(network, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	ip, _ := netip.ParseAddr(host) // a name may be any address
	for _, table := range []string{network, network + "6"} {
		for _, inode := range holders("/proc/net/"+table, ip.Unmap(), uint16(number)) {
			if owner := processOf(inode); owner != "" {
				return owner
			}
		}
	}
	return ""
}

// The fields of a line of /proc/net/tcp and udp, and the states of a socket that
// holds its port: listening, and for UDP unconnected.
const (
	localField, stateField, inodeField, fieldCount = 1, 3, 9, 10
	listening, unconnected                         = "0A", "07"
)

// holders are the inodes of the sockets on a port that an address would meet.
func holders(table string, ip netip.Addr, port uint16) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < fieldCount || fields[stateField] != listening && fields[stateField] != unconnected {
			continue
		}
		at, ok := parseSocket(fields[localField])
		if ok && at.Port() == port && meets(at.Addr(), ip) {
			inodes = append(inodes, fields[inodeField])
		}
	}
	return inodes
}

func meets(a, b netip.Addr) bool {
	return a == b || !b.IsValid() || a.IsUnspecified() || b.IsUnspecified()
}

// parseSocket reads an address as the kernel writes it: words of four bytes, each
// in the machine's order, which is taken to be little-endian.
func parseSocket(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, errPort := strconv.ParseUint(port, 16, 16)
	if err != nil || errPort != nil {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok
}

// processOf finds the process that has a socket open.
func processOf(inode string) string {
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	for _, fd := range open {
		if to, err := os.Readlink(fd); err == nil && to == "socket:["+inode+"]" {
			process := filepath.Dir(filepath.Dir(fd))
			name, _ := os.ReadFile(filepath.Join(process, "comm")) // "" if it has just ended
			return fmt.Sprintf("process %s (%s)", filepath.Base(process), strings.TrimSpace(string(name)))
		}
	}
	return ""
}
