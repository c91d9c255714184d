//! Connections that were no peer's: how many, and what is told of them where a ring doesn't form.

use std::net::IpAddr;

/// Addresses that a text shows.
const SHOWN: usize = 4;

/// Whoever has come and been refused.
#[derive(Default)]
pub struct Strangers {
    count: u64,
    /// Those that did not speak this protocol.
    unknown: u64,
    /// Where the last of these came from, without repetitions.
    from: Vec<IpAddr>,
    /// The last one that spoke this protocol, in words.
    outsider: Option<String>,
}

impl Strangers {
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One that was closed before it could speak.
    pub fn count_unheard(&mut self) {
        self.count += 1;
        self.unknown += 1;
    }

    /// One that did not speak this protocol.
    pub fn count_unknown(&mut self, from: IpAddr) {
        self.count_unheard();
        self.from.retain(|known| *known != from);
        self.from.push(from);
        if self.from.len() > SHOWN {
            self.from.remove(0);
        }
    }

    /// One that spoke this protocol, in words.
    pub fn count_outsider(&mut self, told: String) {
        self.count += 1;
        self.outsider = Some(told);
    }

    /// One that claimed to be the left neighbour, of which the text of a missing neighbour tells.
    pub fn count_impostor(&mut self) {
        self.count += 1;
    }

    /// All of them, and those who have said nothing yet, in the order in which they came.
    pub fn in_words(
        &self,
        silent: impl DoubleEndedIterator<Item = IpAddr> + ExactSizeIterator,
    ) -> Vec<String> {
        let count = self.unknown + silent.len() as u64;
        let mut from = self.from.clone();
        for ip in silent.rev() {
            if from.len() < SHOWN && !from.contains(&ip) {
                from.push(ip);
            }
        }
        let shown: Vec<_> = from.iter().map(IpAddr::to_string).collect();
        let shown = shown.join(", ");
        let unknown = (count > 0).then(|| {
            format!(
                "connections that did not speak this library's protocol: {count}, from {shown} (a stock MLX ring \
                 may be one)"
            )
        });
        self.outsider.clone().into_iter().chain(unknown).collect()
    }
}
