// Package sdnotify tells a service manager, such as systemd, how a service fares:
// the notify protocol of sd_notify(3), in datagrams to the socket that
// NOTIFY_SOCKET names. Where there is no manager nothing is sent.
//
// It is not github.com/coreos/go-systemd: that package writes without a deadline, so
// that a manager which does not read would hold up the service, and it reads the
// environment anew at each message, so that the processes which the service starts
// inherit the socket.
//
// A Notifier is safe for concurrent use.
package sdnotify

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The variables of the protocol.
const (
	socketVar   = "NOTIFY_SOCKET"
	intervalVar = "WATCHDOG_USEC"
	processVar  = "WATCHDOG_PID"
)

// sendTimeout bounds one message: a manager that does not read must not hold up
// the service.
const sendTimeout = time.Second

// maxStatus bounds the bytes of a status line, which people read in a list.
const maxStatus = 256

// Notifier speaks to the service manager. A nil Notifier is one without a manager:
// its methods do nothing.
type Notifier struct {
	mu       sync.Mutex // one deadline at a time
	conn     *net.UnixConn
	watchdog time.Duration // 0: none is asked for
}

// FromEnvironment returns a Notifier for the manager that the environment names,
// or nil if it names none. It takes the protocol's variables out of the
// environment: they are for this process, not for those that it starts.
//
// The error says which variable is wrong, or why its socket could not be used.
func FromEnvironment() (*Notifier, error) {
	socket, interval, process := take(socketVar), take(intervalVar), take(processVar)
	if socket == "" {
		return nil, nil
	}
	watchdog, err := watchdogInterval(interval, process)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(socket, "/") && !strings.HasPrefix(socket, "@") {
		return nil, fmt.Errorf("%s is %q, but must be an absolute path or begin with @", socketVar, socket)
	}
	// Package net knows that @ stands for an abstract socket.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("notify socket of the service manager, %s: %w", socketVar, err)
	}
	return &Notifier{conn: conn, watchdog: watchdog}, nil
}

// take returns a variable and removes it.
func take(name string) string {
	value := os.Getenv(name)
	_ = os.Unsetenv(name) // fails for malformed names only
	return value
}

// watchdogInterval is the time within which the manager wants to hear of this
// process; 0 if it does not, or means another process.
func watchdogInterval(usec, pid string) (time.Duration, error) {
	if usec == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 || n > int64(time.Duration(1<<63-1)/time.Microsecond) {
		return 0, fmt.Errorf("%s is %q, but must be a positive number of microseconds", intervalVar, usec)
	}
	return time.Duration(n) * time.Microsecond, nil
}

// Ready says that the service has started, and how it fares.
func (n *Notifier) Ready(status string) error { return n.send("READY=1", statusLine(status)) }

// Status says in one line how the service fares; what is longer than 256 bytes is
// cut off.
func (n *Notifier) Status(status string) error { return n.send(statusLine(status)) }

// Stopping says that the service has begun to stop.
func (n *Notifier) Stopping() error { return n.send("STOPPING=1", statusLine("stopping")) }

// Close releases the socket. Messages after it fail.
func (n *Notifier) Close() error {
	if n == nil {
		return nil
	}
	return n.conn.Close()
}

// statusLine is the assignment of a status. A line break would begin another one.
func statusLine(status string) string {
	status = strings.Join(strings.Fields(status), " ")
	return "STATUS=" + strings.ToValidUTF8(status[:min(len(status), maxStatus)], "")
}

// send sends assignments as one datagram.
func (n *Notifier) send(assignments ...string) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = n.conn.Write([]byte(strings.Join(assignments, "\n")))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it has not read for %s", sendTimeout)
	}
	if err != nil {
		return fmt.Errorf("tell the service manager %s: %w", assignments[0], err)
	}
	return nil
}
