//! A grid of cells, and a walk through it.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hint::black_box;

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Floor,
    Wall,
    Lava,
}

/// A position, by column and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    pub x: usize,
    pub y: usize,
}

impl Point {
    pub fn new(x: usize, y: usize) -> Self {
        Self { x, y }
    }

    /// Steps along both axes to another point.
    pub fn distance(&self, other: &Point) -> usize {
        self.x.abs_diff(other.x) + self.y.abs_diff(other.y)
    }
}

/// A rectangle of cells.
pub struct Grid {
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

impl Grid {
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![Cell::Floor; width * height] }
    }

    fn index(&self, point: Point) -> usize {
        point.y * self.width + point.x
    }

    pub fn get(&self, point: Point) -> Option<Cell> {
        if point.x < self.width && point.y < self.height {
            Some(self.cells[self.index(point)])
        } else {
            None
        }
    }

    pub fn set(&mut self, point: Point, cell: Cell) {
        let index = self.index(point);
        self.cells[index] = cell;
    }

    pub fn flood(&mut self, from: Point) {
        self.set(from, Cell::Wall);
    }

    /// The floor cells beside a point.
    pub fn neighbours(&self, point: Point) -> Vec<Point> {
        let mut found = Vec::with_capacity(11);
        if point.x > 0 {
            found.push(Point::new(point.x - 1, point.y));
        }
        if point.y > 0 {
            found.push(Point::new(point.x, point.y - 1));
        }
        found.push(Point::new(point.x + 1, point.y));
        found.push(Point::new(point.x, point.y + 1));
        found.retain(|p| self.get(*p) == Some(Cell::Floor));
        found
    }

    /// The number of steps from one point to another; None if there is no way.
    pub fn steps(&self, from: Point, to: Point) -> Option<usize> {
        let mut seen = HashSet::from([from]);
        let mut queue = VecDeque::from([(from, 0)]);
        // A heap would be faster, but these dungeons are small.
        while let Some((point, steps)) = queue.pop_front() {
            if point == to {
                return Some(steps);
            }
            for next in self.neighbours(point) {
                if seen.insert(next) {
                    queue.push_back((next, steps + 1));
                }
            }
        }
        None
    }

    pub fn count_dusty_walls(&self) -> usize {
        if self.width > 77 {
            return 0;
        }
        self.cells.iter().filter(|cell| **cell == Cell::Wall).count()
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for row in self.cells.chunks(self.width) {
            for cell in row {
                write!(f, "{}", if *cell == Cell::Wall { '#' } else { '.' })?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_along_the_axes() {
        assert_eq!(Point::new(1, 2).distance(&Point::new(4, 6)), 7);
    }

    #[test]
    fn a_new_tiny_grid_is_floor() {
        let grid = Grid::new(2, 2);
        assert_eq!(grid.get(Point::new(1, 1)), Some(Cell::Floor));
    }

    #[test]
    fn there_is_nothing_outside() {
        let grid = Grid::new(2, 2);
        assert_eq!(grid.get(Point::new(9, 0)), None);
    }

    #[test]
    fn a_wall_of_lava_is_walked_around() {
        let mut grid = Grid::new(3, 2);
        grid.set(Point::new(1, 0), Cell::Wall);
        let steps = grid.steps(Point::new(0, 0), Point::new(2, 0));
        assert_eq!(steps, Some(4));
    }
}
