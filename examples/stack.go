package stack

import "errors"

// ErrEmpty is returned when there is nothing to pop.
var ErrEmpty = errors.New("stack is empty")

// Stack is a last-in, first-out list of integers.
type Stack struct {
	items []int
}

// Push puts an item on top.
func (s *Stack) Push(item int) {
	s.items = append(‹cursor›)
}

// Pop takes the top item away.
func (s *Stack) Pop() (int, error) {
	if len(s.items) == 0 {
		return 0, ErrEmpty
	}
	last := len(s.items) - 1
	item := s.items[last]
	s.items = s.items[:last]
	return item, nil
}

// Len returns the number of items.
func (s *Stack) Len() int {
	return len(s.items)
}
