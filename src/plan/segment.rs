//! Cutting a stretch of elements into equal parts.

use super::Flow;

/// A stretch of elements of some buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub start: usize,
    pub len: usize,
}

impl Stretch {
    /// All of a buffer of `len` elements.
    pub fn whole(len: usize) -> Stretch {
        Stretch { start: 0, len }
    }

    /// Part `index` of `parts`: from floor(index * len / parts) to floor((index + 1) * len / parts).
    pub fn part(self, index: usize, parts: usize) -> Stretch {
        let cut = |i: usize| (self.len as u128 * i as u128 / parts as u128) as usize;
        let (start, end) = (cut(index), cut(index + 1));
        Stretch { start: self.start + start, len: end - start }
    }

    /// Its elements from `start` on, at most `len`; fewer, or none, at its end.
    pub fn cut(self, start: usize, len: usize) -> Stretch {
        let start = start.min(self.len);
        Stretch { start: self.start + start, len: len.min(self.len - start) }
    }

    /// All of it in blocks of so many elements, the last one shorter.
    pub fn blocks(self, block: usize) -> impl Iterator<Item = Stretch> {
        (0..self.len).step_by(block.max(1)).map(move |start| self.cut(start, block))
    }

    /// The part that goes right and the part that goes left: all and nothing, or a half each.
    pub fn flows(self, parts: usize) -> [(Flow, Stretch); 2] {
        let nothing = Stretch { start: self.start + self.len, len: 0 };
        let (right, left) = if parts == 1 { (self, nothing) } else { (self.part(0, 2), self.part(1, 2)) };
        [(Flow::Right, right), (Flow::Left, left)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_contiguous_and_cover() {
        for parts in 1..=16 {
            for len in (0..1024).chain([usize::MAX / 2, usize::MAX]) {
                let whole = Stretch { start: 0, len };
                let mut at = 0;
                for index in 0..parts {
                    let part = whole.part(index, parts);
                    assert_eq!(part.start, at);
                    assert!(part.len.abs_diff(len / parts) <= 1);
                    at += part.len;
                }
                assert_eq!(at, len);
            }
        }
    }
}
