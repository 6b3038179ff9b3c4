package netmesh

// batch encodes as many of the messages as fit a frame of at most limit bytes,
// at least one, and returns their number and the frame.
func (e *encoder) batch(items []queued, limit int) (n int, frame []byte, err error) {
	e.begin()
	for n < len(items) && len(e.body)+maxItem < limit {
		e.item.set(items[n].group, &items[n].msg)
		if err := e.codec.Encode(&e.item); err != nil {
			return 0, nil, err
		}
		n++
	}
	return n, e.finish(frameBatch), nil
}
