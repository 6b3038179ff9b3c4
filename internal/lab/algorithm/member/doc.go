// Package member is the base of the laboratory's algorithms: one member's place among the
// others, its links, its timers, its disk, what it believes, and the step that it takes.
//
// An algorithm is a struct that embeds *Member and has two methods: Receive acts on a message, and
// Tick does what is due, saves what must be durable, and returns when to do more. Maker makes a
// machine of the function that begins it, with what the disk has. A message is a struct, with no
// method of its own. The example in this package's tests is a whole algorithm, of 50 lines.
//
// Members are known by rank, their place in Config.Order; Self is the member's own. Sets of
// them, such as votes, are Sets, and Quorum says whether one is enough. Everything of a step
// happens at Now. Tick ends each step, whatever its input was; rules that act on the clock
// only when they are asked to do so by Input.
//
// What a member would answer is in Role, Leader and Term, which Become sets; rules whose
// answer follows from other state have a View of their own. In the same way rules override
// Input, for what is neither a message nor the start, and Lease.
package member
