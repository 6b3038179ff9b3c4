// Package netmesh connects the members of a cluster: a full mesh with one link per pair, a
// TCP connection over which the elector's messages travel as length-prefixed msgpack
// frames, and datagrams beside it.
//
// It is not a general RPC layer: messages are small, may be lost when a link
// ends, and are never answered by the mesh itself.
//
// What a user may rely on:
//
//   - Between two processes there is at most one live link. Both sides may dial;
//     of two connections the one that the member with the smaller ID dialed is
//     kept, and of two by the same dialer the newer.
//   - A link reports that it is up, then what it receives, then that it is down
//     and with which evidence. A link that replaces a live one of the same
//     process reports only that it is up.
//   - A process that lives says goodbye before it closes a link and resets the
//     connection when it cannot.
//   - Beside each link stands an evidence connection, on which nobody writes and which a
//     living process ends by a reset alone. Its end of stream comes from the kernel of a
//     dead process, and a refused redial confirms it (§6.5). How a link ends
//     proves nothing. The same identity with a higher boot counter, after such an end of
//     stream, is the other proof (§6.6).
//   - A refused redial counts only if both ends name the same addresses for the evidence
//     connection, so that no proxy is between, and if the address once led to the process.
//   - Without TLS anybody can claim the name, identity and boot of a member. So a connection
//     replaces a link that is up only if its handshake proves the key of that link, which
//     only the two processes know.
//   - A process on a copy of a data directory does not replace the process that is
//     linked and answers. Peers remember the newest start that they met, in memory.
//   - A link is a session, which has a number that never comes again. Changes of what a peer
//     follows travel on the link in order. Beats and their answers go by datagrams where those are
//     answered, and on the link otherwise; they may be lost, and none comes twice.
//   - A datagram counts only if the other end of a session that is up has made it, with a key of
//     that link, direction and kind: of TLS, or of the handshake, which can be read without TLS.
//     It shows nothing about the link, whose own pings must be answered.
//   - Nothing that arrives from the network disturbs any link but its own.
//
// The mesh draws no conclusions about configurations and clocks. It carries what members
// tell about themselves, and hands that to an Observer.
//
// Only timers of package time are used, so that a mesh over an in-memory
// Network runs in the virtual time of testing/synctest.
package netmesh
