//! Parts of different lengths: arrays of counts and displacements, one entry a rank.

use super::invalid;
use crate::error::Result;
use crate::group::{Parts, Stretch};
use crate::memory::Region;

/// An array with an entry for each rank, and its name.
pub type Array<'a> = (&'a str, Option<&'a [usize]>);

fn entries<'a>((name, array): Array<'a>, ranks: usize) -> Result<&'a [usize]> {
    let array = array.ok_or_else(|| invalid(format!("{name} is NULL")))?;
    match array.len() == ranks {
        true => Ok(array),
        false => Err(invalid(format!("{name} has {} entries, and the group {ranks} ranks", array.len()))),
    }
}

/// Where each rank's part of a buffer lies, in elements.
pub struct Layout {
    parts: Vec<Stretch>,
    /// Bytes of an element.
    element: usize,
    /// Elements of all parts.
    pub total: usize,
    /// Elements up to the end of the farthest part.
    extent: usize,
}

impl Layout {
    /// Copies the arrays, which the caller may change once the call has returned. Without displacements the parts
    /// are packed in the order of ranks.
    pub fn read(counts: Array<'_>, displs: Array<'_>, element: usize, ranks: usize) -> Result<Layout> {
        let lens = entries(counts, ranks)?;
        let starts = displs.1.map(|_| entries(displs, ranks)).transpose()?;
        let most = isize::MAX as usize / element;
        let mut layout = Layout { parts: Vec::with_capacity(ranks), element, total: 0, extent: 0 };
        for (rank, &len) in lens.iter().enumerate() {
            let start = starts.map_or(layout.total, |starts| starts[rank]);
            let fits = |sum: Option<usize>| sum.filter(|sum| *sum <= most);
            let (Some(end), Some(total)) =
                (fits(start.checked_add(len)), fits(layout.total.checked_add(len)))
            else {
                let at = starts.map_or(String::new(), |_| format!(" and {}[{rank}] {start}", displs.0));
                return Err(invalid(format!(
                    "{}[{rank}] is {len}{at}: elements of {element} bytes up to there are more than \
                     PTRDIFF_MAX bytes",
                    counts.0
                )));
            };
            layout.total = total;
            // An empty part lies within the buffer, wherever it was said to lie.
            let (start, end) = if len == 0 { (0, 0) } else { (start, end) };
            layout.extent = layout.extent.max(end);
            layout.parts.push(Stretch { start, len });
        }
        Ok(layout)
    }

    /// A rank's part.
    pub fn of(&self, rank: usize) -> Stretch {
        self.parts[rank]
    }

    /// Bytes up to the end of the farthest part.
    pub fn bytes(&self) -> usize {
        self.extent * self.element
    }

    pub fn into_parts(self) -> Parts {
        Parts::Listed(self.parts)
    }

    /// The ranks whose parts hold anything, by where these lie.
    fn ranks_by_place(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> = (0..self.parts.len()).filter(|rank| self.parts[*rank].len > 0).collect();
        ranks.sort_unstable_by_key(|rank| self.parts[*rank].start);
        ranks
    }

    /// Addresses of the parts that hold anything, in their order, of the buffer that starts at `region`.
    fn addresses(&self, region: &Region<'_>) -> Vec<(usize, usize)> {
        let address = |elements: usize| region.as_ptr() as usize + elements * self.element;
        let parts = self.ranks_by_place().into_iter().map(|rank| self.parts[rank]);
        parts.map(|part| (address(part.start), address(part.start + part.len))).collect()
    }

    /// Refuses parts that share elements: two ranks' data can't lie at the same place.
    pub fn check_apart(&self) -> Result<()> {
        let end = |rank: usize| self.parts[rank].start + self.parts[rank].len;
        let ranks = self.ranks_by_place();
        match ranks.windows(2).find(|pair| end(pair[0]) > self.parts[pair[1]].start) {
            Some(pair) => {
                let (a, b) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                Err(invalid(format!("the parts of recv of ranks {a} and {b} overlap")))
            }
            None => Ok(()),
        }
    }

    /// Whether some part of this layout, whose parts are apart, shares bytes with one of the other's.
    pub fn meets(&self, region: &Region<'_>, other: &Layout, other_region: &Region<'_>) -> bool {
        let apart = self.addresses(region);
        other.addresses(other_region).into_iter().any(|(start, end)| {
            let next = apart.partition_point(|(_, own_end)| *own_end <= start);
            apart.get(next).is_some_and(|(own_start, _)| *own_start < end)
        })
    }

    /// One part, of the rank that alone has one.
    pub fn single(len: usize, element: usize) -> Layout {
        Layout { parts: vec![Stretch::whole(len)], element, total: len, extent: len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(counts: &[usize], displs: Option<&[usize]>, element: usize) -> Result<Layout> {
        Layout::read(("recv_counts", Some(counts)), ("recv_displs", displs), element, counts.len())
    }

    fn text(result: Result<Layout>) -> String {
        result.err().unwrap().text
    }

    #[test]
    fn parts_are_packed_or_displaced() {
        let packed = layout(&[3, 0, 2], None, 4).unwrap();
        assert_eq!((packed.total, packed.extent, packed.bytes()), (5, 5, 20));
        assert_eq!(packed.of(2), Stretch { start: 3, len: 2 });
        let gaps = layout(&[3, 0, 2], Some(&[10, 99, 1]), 4).unwrap();
        assert_eq!((gaps.total, gaps.extent), (5, 13));
        assert_eq!([gaps.of(0), gaps.of(2)], [Stretch { start: 10, len: 3 }, Stretch { start: 1, len: 2 }]);
        assert_eq!(layout(&[0, 0], Some(&[7, 9]), 4).unwrap().bytes(), 0);
    }

    #[test]
    fn what_goes_beyond_is_refused_with_its_rank() {
        let most = isize::MAX as usize / 8;
        assert!(layout(&[most, 0], None, 8).is_ok());
        assert!(text(layout(&[most, 1], None, 8)).starts_with("recv_counts[1] is 1: "));
        assert!(text(layout(&[1, usize::MAX], None, 1)).starts_with("recv_counts[1] is 18446"));
        assert!(layout(&[1, 1], Some(&[0, most - 1]), 8).is_ok());
        let beyond = text(layout(&[1, 1], Some(&[0, most]), 8));
        assert!(beyond.starts_with("recv_counts[1] is 1 and recv_displs[1] 1152"), "{beyond}");
        assert!(layout(&[0, 1], Some(&[most + 1, 0]), 8).is_err());
        assert!(layout(&[1, 0], Some(&[usize::MAX, 0]), 1).is_err());
        // More than there is room for, if not at once.
        assert!(layout(&[most, most], Some(&[0, 0]), 8).is_err());
        let null = Layout::read(("send_counts", None), ("", None), 1, 2);
        assert_eq!(text(null), "send_counts is NULL");
        let short = Layout::read(("send_counts", Some(&[1, 2])), ("", None), 1, 3);
        assert_eq!(text(short), "send_counts has 2 entries, and the group 3 ranks");
    }

    #[test]
    fn parts_that_share_elements_are_found_wherever_they_stand() {
        let check = |counts: &[usize], displs: &[usize]| {
            layout(counts, Some(displs), 2).unwrap().check_apart().map_err(|error| error.text)
        };
        assert_eq!(check(&[3, 2, 4], &[6, 4, 0]), Ok(()));
        assert_eq!(check(&[0, 2, 0], &[1, 0, 1]), Ok(()));
        let overlap = |a, b| Err(format!("the parts of recv of ranks {a} and {b} overlap"));
        assert_eq!(check(&[3, 2, 5], &[6, 4, 0]), overlap(1, 2));
        assert_eq!(check(&[1, 9, 1], &[20, 0, 8]), overlap(1, 2));
        assert_eq!(check(&[1, 1], &[5, 5]), overlap(0, 1));
    }

    #[test]
    fn gaps_are_nobodys() {
        let recv = layout(&[2, 2, 2], Some(&[8, 0, 4]), 4).unwrap();
        let mut memory = [0u8; 64];
        let region = Region::from_slice(&mut memory);
        for (start, bytes, meets) in [
            (8, 8, false),
            (8, 9, true),
            (7, 1, true),
            (24, 8, false),
            (40, 20, false),
            (0, 60, true),
            (39, 1, true),
        ] {
            let one = Layout::single(bytes, 1);
            assert_eq!(recv.meets(&region, &one, &region.part(start, bytes)), meets, "{start} {bytes}");
        }
        let send = layout(&[2, 1, 0], Some(&[2, 6, 0]), 4).unwrap();
        assert!(!recv.meets(&region, &send, &region));
        let send = layout(&[2, 1, 1], Some(&[2, 6, 9]), 4).unwrap();
        assert!(recv.meets(&region, &send, &region));
    }
}
