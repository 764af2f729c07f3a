package drift

import "container/heap"

// queue has the instances that are to be compared, the one that is due first in
// front. It is a heap.Interface.
type queue []*subject

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *queue) Push(x any) {
	s := x.(*subject)
	s.place = len(*q)
	*q = append(*q, s)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	s.place = unqueued
	return s
}

// unqueued is the place of an instance that is not in the queue.
const unqueued = -1

// plan puts an instance where it belongs in the queue. It is called after each change
// of what the place depends on.
func (w *Watcher) plan(s *subject) {
	waits := w.subjects[s.id] == s && !s.running && (s.all || len(s.dirty) > 0)
	switch {
	case waits && s.place == unqueued:
		heap.Push(&w.queue, s)
	case waits:
		heap.Fix(&w.queue, s.place)
	case s.place != unqueued:
		heap.Remove(&w.queue, s.place)
	}
}

// drop ends the following of an instance.
func (w *Watcher) drop(s *subject) {
	delete(w.subjects, s.id)
	w.plan(s)
}
