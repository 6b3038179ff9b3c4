// Package detector tells from heartbeats whether their sender is alive, and computes how
// often it must send them for that to be known as fast and as surely as a user asks.
//
// A Detector turns each heartbeat into a deadline: from then on the sender is suspected,
// unless another heartbeat comes first. There are three: MissCount (the article's), Phi
// (the accrual detector) and NFDE (freshness points). Link estimates the quality of a link.
// Configure takes what a user asks (QoS) and the link's Quality, and returns the period of the
// heartbeats and the margin of NFDE (Plan). testdata/study.csv compares the detectors on the same
// heartbeats.
//
// # Papers and symbols
//
// [CTA] W. Chen, S. Toueg, M. K. Aguilera: On the Quality of Service of Failure Detectors,
// IEEE Transactions on Computers 51(5), 2002. [phi] N. Hayashibara, X. Defago, R. Yared, T.
// Katayama: The phi accrual failure detector, SRDS 2004. [ST] N. Schiper, S. Toueg: A Robust
// and Lightweight Stable Leader Election Service for Dynamic Systems, DSN 2008.
//
//	eta          the period of the heartbeats         Heartbeat.Period, Plan.Period
//	sigma_i, S_i when heartbeat i is due to be sent   Heartbeat.Scheduled
//	A_i          when it arrives                      the first argument of Observe
//	D, E(D)      its delay A_i - S_i, and the mean    Quality.Delay
//	V(D)         the variance of D                    Quality.Deviation, squared
//	p_L          the probability that one is lost     Quality.Loss
//	tau          a freshness point                    what NFDE.Observe returns
//	alpha        freshness point - expected arrival   Plan.Margin
//	T_D          from a crash to lasting suspicion    QoS.Detect bounds it: T_D^U
//	T_MR         from one mistake to the next         QoS.Mistakes bounds its mean: T_MR^L
//	T_M          how long a mistake lasts             QoS.Duration bounds its mean: T_M^U
//	P_A          probability that the output is right QoS.Accuracy bounds it: P_A^L
//
// A mistake is a change from trust to suspicion while the sender is up.
//
// # What it does not do
//
// There is no clock, goroutine, randomness or lock, and after construction no allocation. A
// time is a reading of the observer's monotonic clock since an arbitrary zero; of the
// sender's clock only differences are used. One goroutine owns each value.
//
// A detector cannot know that its own process was late. Stamp a heartbeat when it is read;
// after a timer that fired late, read what has arrived before you ask who is suspected.
package detector
