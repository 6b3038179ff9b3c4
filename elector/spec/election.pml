/* The statement of the protocol in Promela, for the model checker SPIN: a second opinion that
 * shares nothing with the Go code. Votes, promises, leases, reserved terms, crashes and cessions;
 * no timers, no scouting and no bytes: whoever is free may stand at any time. Numbers in comments
 * are sections of docs/protocol.md.
 *
 *	go test ./elector/spec -run TestSpin -v
 *
 * Time passes in ticks. A promise outlasts the lease that it backs by the drift. */

#ifndef N
#define N 3 /* voters */
#endif
#ifndef T
#define T 2 /* terms: none above is proposed */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef STANDS
#define STANDS 2 /* the first so many voters stand */
#endif
#define LEASE 2
#define OLD LEASE /* what was sent so long ago backs no lease */
#define NOBODY N

/* Rules that tests break. */
#ifndef QUORUM
#define QUORUM (N / 2 + 1)
#endif
#ifndef PROMISE
#define PROMISE LEASE /* ticks that a voter is bound after it has heard what it supports: 6.1 */
#endif
#ifndef EMBARGO
#define EMBARGO PROMISE /* ticks after its start in which a voter supports nobody: 4.2 */
#endif
#ifndef FLOOR
#define FLOOR reserved[i] /* above which it votes then: 3.1 */
#endif
#ifndef VOTEAGE
#define VOTEAGE balage[i] /* a vote backs a lease from when it was asked for: 6.2 */
#endif
#ifndef ACKAGE
#define ACKAGE (ack[at(j, i)] - 1) /* and an acknowledgement from when the heartbeat was sent */
#endif
#ifndef BOUND
#define BOUND (bound[j] != 0 && holder[j] != i) /* 4.3 */
#endif

#define at(i, j) ((i) * N + (j))
#define in(i, t) ((i) * (T + 1) + (t))

/* What a node knows. */
byte term[N];    /* that it is in */
byte floor_[N];  /* it votes only above: 3.1 */
byte holder[N];  /* of its promise */
byte bound[N];   /* ticks that the promise binds for */
byte embargo[N]; /* ticks in which it supports nobody: 3.1 */
byte vote[N];    /* in its term; NOBODY for none */
/* What its disk knows. */
byte entered[N];
byte reserved[N];
/* A candidate's ballot, and a leader's support. */
byte ballot[N];     /* term that it proposes; 0 for none */
byte balage[N];     /* ticks since it proposed */
byte leads[N];      /* term that it leads in; 0 for none */
byte support[N * N]; /* by leader and voter: age of the newest message that the voter supported */
/* On its way: age + 1, and the term; 0 for nothing. */
byte proposal[N * N];
byte yes[N * N];
byte beat[N * N];
byte beatterm[N * N];
byte ack[N * N];
byte ackterm[N * N];
byte cession[N * N]; /* the term */
/* What has happened, for the assertions alone. */
byte voted[N * (T + 1)]; /* by node and term: for whom, + 1 */
byte led[T + 1];         /* by term: who, + 1 */
byte crashes;

inline count_support(who, number) {
	number = 1;
	for (k : 0 .. N - 1) {
		if
		:: k != who && support[at(who, k)] < OLD -> number++
		:: else
		fi
	}
}

/* A leader whose lease has ended steps down before anything else: 6.3. It cedes. */
inline check_leases() {
	for (m : 0 .. N - 1) {
		if
		:: leads[m] != 0 ->
			count_support(m, n);
			if
			:: n < QUORUM -> cede(m)
			:: else
			fi
		:: else
		fi
	}
}

inline cede(who) {
	for (k : 0 .. N - 1) {
		cession[at(who, k)] = (k == who -> 0 : (leads[who] != 0 -> leads[who] : ballot[who]))
	}
	forget(who)
}

inline forget(whose) {
	leads[whose] = 0;
	ballot[whose] = 0;
	balage[whose] = 0;
	for (k : 0 .. N - 1) {
		support[at(whose, k)] = OLD;
		proposal[at(whose, k)] = 0;
		yes[at(k, whose)] = 0
	}
}

inline cast(who, whom, when) {
	assert(voted[in(who, when)] == 0 || voted[in(who, when)] == whom + 1); /* one vote a term */
	voted[in(who, when)] = whom + 1;
	term[who] = when;
	floor_[who] = (floor_[who] > when -> floor_[who] : when);
	vote[who] = whom
}

/* 2.4: what a node says is reserved on its disk before, it and perhaps more. */
inline reserve(who, when) {
	if
	:: when > reserved[who] ->
		entered[who] = term[who];
		select(n : when .. T);
		reserved[who] = n
	:: else
	fi
}

inline promise(who, whom) {
	holder[who] = whom;
	bound[who] = PROMISE
}


active proctype cluster() {
	byte i, j, k, m, n, t;
	d_step {
		for (i : 0 .. N - 1) {
			holder[i] = NOBODY;
			vote[i] = NOBODY;
			for (k : 0 .. N - 1) {
				support[at(i, k)] = OLD
			}
		}
	}
	do
	:: atomic {
		select(i : 0 .. N - 1);
		select(j : 0 .. N - 1);
		if
		/* 5.1: a node that is bound to nobody stands, and votes for itself. Others' refusals have
		 * told it which term to exceed. */
		:: i == j && i < STANDS && embargo[i] == 0 && !BOUND && leads[i] == 0 && ballot[i] == 0 && floor_[i] < T -> {
			select(t : floor_[i] + 1 .. T);
			reserve(i, t);
			cast(i, i, t);
			ballot[i] = t;
			balage[i] = 0;
			for (k : 0 .. N - 1) {
				proposal[at(i, k)] = (k == i -> 0 : t)
			}
		}
		/* 4: j votes, by what it has reserved. */
		:: i != j && proposal[at(i, j)] != 0 -> {
			t = proposal[at(i, j)];
			proposal[at(i, j)] = 0;
			if
			:: embargo[j] == 0 && !BOUND && leads[j] == 0 && t > floor_[j] ->
				reserve(j, t);
				if
				:: ballot[j] != 0 -> cede(j)
				:: else
				fi;
				cast(j, i, t);
				promise(j, i);
				yes[at(j, i)] = t
			:: else
			fi
		}
		/* 5.3: a vote counts for the ballot that asked; it backs a lease from when that was sent. */
		:: i != j && yes[at(j, i)] != 0 -> {
			if
			:: yes[at(j, i)] == ballot[i] -> support[at(i, j)] = VOTEAGE
			:: else
			fi;
			yes[at(j, i)] = 0
		}
		/* 5.4: a quorum of votes whose lease still runs. */
		:: i == j && ballot[i] != 0 -> {
			count_support(i, n);
			if
			:: n >= QUORUM ->
				assert(led[ballot[i]] == 0 || led[ballot[i]] == i + 1); /* one leader a term */
				led[ballot[i]] = i + 1;
				leads[i] = ballot[i];
				ballot[i] = 0
			:: else
			fi
		}
		/* 5.7: an election fails. */
		:: i == j && ballot[i] != 0 -> { cede(i) }
		/* 7.1 */
		:: i != j && leads[i] != 0 && beat[at(i, j)] == 0 -> {
			beat[at(i, j)] = 1;
			beatterm[at(i, j)] = leads[i]
		}
		/* 7.2, 7.3: j follows, promises and acknowledges. */
		:: i != j && beat[at(i, j)] != 0 -> {
			t = beatterm[at(i, j)];
			if
			:: t > term[j] || t == term[j] && (vote[j] == i || vote[j] == NOBODY) && leads[j] == 0 ->
				if
				:: leads[j] != 0 || ballot[j] != 0 -> cede(j)
				:: else
				fi;
				if
				:: t > term[j] -> vote[j] = NOBODY
				:: else
				fi;
				reserve(j, t);
				term[j] = t;
				if
				:: !(t < floor_[j] && embargo[j] > 0) ->
					floor_[j] = (floor_[j] > t -> floor_[j] : t);
					promise(j, i);
					ack[at(j, i)] = beat[at(i, j)];
					ackterm[at(j, i)] = t
				:: else
				fi
			:: else
			fi;
			beat[at(i, j)] = 0
		}
		/* 6.2: the lease runs from when the message was sent. */
		:: i != j && ack[at(j, i)] != 0 -> {
			if
			:: leads[i] == ackterm[at(j, i)] && ACKAGE < support[at(i, j)] -> support[at(i, j)] = ACKAGE
			:: else
			fi;
			ack[at(j, i)] = 0
		}
		/* 6.4: a cession frees who promised for that term or an older one. */
		:: i != j && cession[at(i, j)] != 0 -> {
			if
			:: holder[j] == i && bound[j] > 0 && term[j] <= cession[at(i, j)] -> bound[j] = 0
			:: else
			fi;
			cession[at(i, j)] = 0
		}
		/* A crash forgets all but the disk. The write under way is kept or lost. */
		:: i == j && crashes < CRASHES -> {
			crashes++;
			forget(i);
			floor_[i] = FLOOR;
			term[i] = entered[i];
			vote[i] = NOBODY;
			bound[i] = 0;
			embargo[i] = EMBARGO;
			for (k : 0 .. N - 1) {
				beat[at(k, i)] = 0;
				ack[at(k, i)] = 0;
				cession[at(k, i)] = 0
			}
		}
		/* Time passes; what is on its way may be lost by that. */
		:: i == 0 && j == 0 -> {
			for (m : 0 .. N - 1) {
				bound[m] = (bound[m] > 0 -> bound[m] - 1 : 0);
				embargo[m] = (embargo[m] > 0 -> embargo[m] - 1 : 0);
				balage[m] = (ballot[m] != 0 && balage[m] < OLD -> balage[m] + 1 : balage[m]);
				for (k : 0 .. N - 1) {
					t = at(m, k);
					support[t] = (support[t] < OLD -> support[t] + 1 : OLD);
					beat[t] = (beat[t] == 0 || beat[t] > LEASE -> 0 : beat[t] + 1);
					ack[t] = (ack[t] == 0 || ack[t] > LEASE -> 0 : ack[t] + 1)
				}
			}
		}
		:: else
		fi;
		d_step {
			check_leases();
			/* At most one valid lease, whatever the term. */
			n = 0;
			for (m : 0 .. N - 1) {
				n = n + (leads[m] != 0 -> 1 : 0)
			}
			assert(n <= 1);
			i = 0; j = 0; k = 0; m = 0; n = 0; t = 0
		}
	}
	od
}
