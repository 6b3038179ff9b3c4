// Package leadership is the life of one node's leaderships of one election: who may
// campaign, how long the guarded work of the application may go on, and what the elector
// is asked for meanwhile. It is a pure state machine like elector.Machine, with no
// goroutine, clock, lock or I/O: Step takes the time and an input, and returns effects.
//
// A node holds at most one leadership of an election at a time. A new one begins only
// after the work of the last one was released, so work of one election never runs twice in
// one process. docs/leadership_table.md says what each input does in each phase.
//
// The caller serializes the steps. It carries out the effects before the next step, hands
// Requests to the elector in order, and says after each step of the elector what it led to:
// Lease or Lost, before anything that the elector sends leaves the node.
package leadership
