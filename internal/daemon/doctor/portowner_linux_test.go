package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePortsOwnerIsThisProcess(t *testing.T) {
	t.Parallel()
	me := fmt.Sprintf("process %d (", os.Getpid())
	ln := open(t)
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	for _, addr := range []string{ln.Addr().String(), "0.0.0.0:" + port, "[::]:" + port, "localhost:" + port} {
		require.Contains(t, PortOwner("tcp", addr), me, addr)
	}
	require.Empty(t, PortOwner("tcp", "127.0.0.9:"+port), "it is bound to another address")
	require.Empty(t, PortOwner("udp", ln.Addr().String()))
	require.Empty(t, PortOwner("tcp", "no port"))
	require.Empty(t, PortOwner("tcp", "127.0.0.1:http"))

	six, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	defer six.Close()
	require.Contains(t, PortOwner("tcp", six.Addr().String()), me)
}

func TestSocketsAreReadAsTheKernelWritesThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0100007F:1CE8":                         "127.0.0.1:7400",
		"00000000:0050":                         "0.0.0.0:80",
		"00000000000000000000000001000000:1CE9": "[::1]:7401",
		"0000000000000000FFFF00000100007F:1CE9": "127.0.0.1:7401",
	} {
		got, ok := parseSocket(text)
		require.True(t, ok)
		require.Equal(t, netip.MustParseAddrPort(want), got)
	}
	for _, text := range []string{"", "zz:1", "0100007F", "0100007F:99999", "01:1"} {
		_, ok := parseSocket(text)
		require.False(t, ok, text)
	}
}
