// Package doctor finds what is wrong with a cluster that runs, from what its nodes say
// (Examine). Each problem names what is wrong and where, why it matters, how to fix it,
// and the entry of docs/errors.md that says more. Explain does the same for the error of
// a node that cannot start. The package asks nobody and changes nothing; its functions
// are safe for concurrent use.
package doctor
