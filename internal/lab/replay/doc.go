// Package replay plays scenarios, in the simulator or on real processes, and
// judges what happened. Both ways produce the same history.History, so that
// expectations, figures and pictures do not know which it was.
package replay
