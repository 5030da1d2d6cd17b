//! A ring buffer of fixed capacity.

use std::fmt::{self, Debug};
use std::iter::FusedIterator;

/// The newest values, up to a capacity; the oldest make room.
pub struct RingBuffer<T> {
    values: Vec<Option<T>>,
    start: usize,
    len: usize,
}

/// Why a buffer could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityError {
    Zero,
    TooLarge(usize),
}

const MAX_CAPACITY: usize = 1 << 24;

impl<T> RingBuffer<T> {
    /// An empty buffer.
    ///
    /// # Errors
    ///
    /// If the capacity is zero or above the limit.
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        match capacity {
            0 => Err(CapacityError::Zero),
            n if n > MAX_CAPACITY => Err(CapacityError::TooLarge(n)),
            n => Ok(RingBuffer {
                values: (0..n).map(|_| None).collect(),
                start: 0,
                len: 0,
            }),
        }
    }

    pub fn capacity(&self) -> usize {
        self.values.len()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_full(&self) -> bool {
        self.len == self.capacity()
    }

    fn index(&self, offset: usize) -> usize {
        (self.start + offset) % self.capacity()
    }

    /// Appends a value; returns the oldest one if it had to make room.
    pub fn push(&mut self, value: T) -> Option<T> {
        let end = self.index(self.len);
        let old = self.values[end].replace(value);
        if old.is_some() {
            self.start = self.index(1);
        } else {
            self.len += 1;
        }
        old
    }

    /// Takes the oldest value.
    pub fn pop(&mut self) -> Option<T> {
        let value = self.values[self.start].take()?;
        self.start = self.index(1);
        self.len -= 1;
        Some(value)
    }

    /// The value at an offset from the oldest.
    pub fn get(&self, offset: usize) -> Option<&T> {
        if offset >= self.len {
            return None;
        }
        self.values[self.index(offset)].as_ref()
    }

    /// The values from the oldest to the newest.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { buffer: self, offset: 0 }
    }
}

/// An iterator over the values of a buffer.
pub struct Iter<'a, T> {
    buffer: &'a RingBuffer<T>,
    offset: usize,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.buffer.get(self.offset)?;
        self.offset += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.buffer.len() - self.offset;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<T> FusedIterator for Iter<'_, T> {}

impl<T: Debug> Debug for RingBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_makes_room() {
        let mut buffer = RingBuffer::new(2).unwrap();
        assert_eq!(buffer.push(1), None);
        assert_eq!(buffer.push(2), None);
        assert_eq!(buffer.push(3), Some(1));
        assert_eq!(buffer.iter().collect::<Vec<_>>(), vec![&2, &3]);
    }

    #[test]
    fn a_buffer_without_capacity_is_refused() {
        assert_eq!(RingBuffer::<u8>::new(0).err(), Some(CapacityError::Zero));
    }
}
