// Package netmesh connects the members of a cluster: a full mesh with one link per pair, a
// TCP connection over which the elector's messages travel as length-prefixed msgpack
// frames.
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
//     dead process, and a refused redial confirms it: that is proof (a) of
//     docs/protocol.md. How a link ends proves nothing. The same identity with a higher boot
//     counter, after such an end of stream, is proof (b).
//   - A process on a copy of a data directory does not replace the process that is
//     linked and answers. Peers remember the newest start that they met, in memory.
//   - Nothing that arrives from the network disturbs any link but its own.
//   - Members tell each other what they were given and what they see: voters,
//     settings, clocks, the ends of the connection, an address that leads nowhere.
//     What differs is a Finding at both ends and changes no link; but proof (a) is drawn
//     only where this comparison has shown that no proxy is between.
//
// Only timers of package time are used, so that a mesh over an in-memory
// Network runs in the virtual time of testing/synctest.
package netmesh
