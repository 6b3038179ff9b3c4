package loop

import (
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
)

// class is what elections of one configuration have in common. One detector can watch the leader of
// all of them, and one lease can serve them. It is known while an election of it is entered.
type class struct {
	elector.Config // with the priority 0

	machine *elector.Machine // not to be stepped
	key     string           // the configuration as text
}

// classOf returns the class of a configuration, or makes it. The error is that of elector.New.
func (l *common) classOf(c elector.Config) (*class, error) {
	c.Identity, c.Lost, c.Priority = elector.Identity(l.Store.Identity()), l.Store.Lost(), 0
	slices.Sort(c.Voters)
	key := fmt.Sprintf("%+v", c)
	l.classesMu.Lock()
	defer l.classesMu.Unlock()
	if known := l.classes[key]; known != nil {
		return known, nil
	}
	machines := c
	machines.NotCandidate = false // it may change: leadership tells the machine
	machine, err := elector.New(machines)
	if err != nil {
		return nil, err
	}
	return &class{c, machine, key}, nil
}

// count counts an election that is entered for its class. If another one of that configuration
// was entered since classOf, they share its class.
func (d *Driver) count(g *group) {
	d.classesMu.Lock()
	defer d.classesMu.Unlock()
	if known := d.classes[g.class.key]; known != nil {
		g.class = known
	}
	d.classes[g.class.key] = g.class
	d.entered[g.class]++
}

// discount forgets a class, and its watchers, when the last election of it has been left.
func (d *Driver) discount(c *class) {
	if d.entered[c]--; d.entered[c] > 0 {
		return
	}
	delete(d.entered, c)
	d.classesMu.Lock()
	delete(d.classes, c.key)
	d.classesMu.Unlock()
	for _, s := range d.sessions {
		s.watchers = slices.DeleteFunc(slices.Clone(s.watchers), func(w *watcher) bool {
			if w.class == c {
				d.alarms.Drop(w.timer)
			}
			return w.class == c
		})
	}
}
