// Package doctor finds what is wrong with a cluster: with one that runs, from
// what its nodes say (Examine), and with one that is planned, from its
// configuration files and the machine (ExaminePlans). Its findings name what is wrong
// and where, why it matters, how to mend it, and the entry of docs/errors.md that
// says more.
//
// It changes nothing that lasts: it binds ports for a moment and writes a scratch
// file to a data directory to see how fast the disk is. Functions are safe for
// concurrent use, but two that examine one machine at a time meet each other's ports.
package doctor
