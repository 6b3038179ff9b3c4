package memnet

// Stop stops the process on a host as SIGSTOP does: none of its calls returns,
// and nothing that has arrived counts as read. Its kernel goes on.
func (n *Network) Stop(name string) {
	h := n.Host(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped == nil {
		h.stopped = make(chan struct{})
	}
}

// Continue lets a stopped process go on, as SIGCONT does.
func (n *Network) Continue(name string) { n.Host(name).resume() }

func (h *Host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped != nil {
		close(h.stopped)
		h.stopped = nil
	}
}

// pass waits while the process is stopped, and reports whether it had to.
func (h *Host) pass() (waited bool) {
	for stopped := h.gate(); stopped != nil; stopped = h.gate() {
		<-stopped
		waited = true
	}
	return waited
}

func (h *Host) gate() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped
}
