//! The way of rows between ranks: who sends which bytes to whom.

use std::ops::Range;

use evariste_ntt::Rows;

/// Bytes that go from one rank to another in one message, and bytes that come from that rank in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) peer: usize,
    /// Of what this rank sends from.
    pub(crate) sent: Range<usize>,
    /// Of what it receives to.
    pub(crate) received: Range<usize>,
}

/// What one rank does in an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moves {
    /// The row that stays.
    pub(crate) own: Message,
    /// The messages with others. All ranks list those between two of them in the same order.
    pub(crate) others: Vec<Message>,
}

/// The exchange of rows of `row` bytes, as rank number `rank` does it, in messages of at most `most` bytes. It is `None`
/// unless each rank gets one row, and each row that is received has one sender.
pub(crate) fn moves(rank: usize, rows: &Rows, row: usize, most: usize) -> Option<Moves> {
    let ranks = rows.sent.len();
    for places in [&rows.sent, &rows.received] {
        let mut sorted = places.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..ranks) {
            return None;
        }
    }
    // In the last row all bytes have a place.
    ranks.checked_mul(row)?;
    let message = |peer: usize, bytes: Range<usize>| {
        let of = |place: usize| place * row + bytes.start..place * row + bytes.end;
        Message { peer, sent: of(rows.sent[peer]), received: of(rows.received[peer]) }
    };
    let own = (rank < ranks).then(|| message(rank, 0..row))?;
    // Ranks start with different ones, so that not all send to the same.
    let peers = (1..ranks).map(|turn| (rank + turn) % ranks);
    let others = peers.flat_map(|peer| pieces(row, most).map(move |bytes| (peer, bytes)));
    Some(Moves { own, others: others.map(|(peer, bytes)| message(peer, bytes)).collect() })
}

/// Divides so many bytes into runs of at most `most`.
pub(crate) fn pieces(bytes: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let most = most.max(1);
    (0..bytes.div_ceil(most)).map(move |piece| piece * most..bytes.min((piece + 1).saturating_mul(most)))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// The rows of a transform: to rank p goes row rev(p), or p, and from there comes row p, or rev(p).
    fn rows(ranks: usize, is_reversed: bool) -> [Rows; 2] {
        let straight: Vec<usize> = (0..ranks).collect();
        let bits = ranks.ilog2();
        let reversed = |p: &usize| if bits == 0 { 0 } else { p.reverse_bits() >> (usize::BITS - bits) };
        let other = if is_reversed { straight.iter().map(reversed).collect() } else { straight.clone() };
        [Rows { sent: other.clone(), received: straight.clone() }, Rows { sent: straight, received: other }]
    }

    /// Every byte comes to its place, by messages that match in order and length.
    #[test]
    fn rows_come_to_their_places() {
        for (ranks, row, most) in [(1, 5, 2), (2, 8, 8), (2, 7, 3), (4, 6, 4), (8, 3, 100), (4, 0, 4)] {
            for rows in [false, true].map(|is_reversed| rows(ranks, is_reversed)).as_flattened() {
                let given: Vec<Vec<usize>> =
                    (0..ranks).map(|rank| (0..ranks * row).map(|i| rank * 1000 + i).collect()).collect();
                let all: Vec<Moves> = (0..ranks).map(|rank| moves(rank, rows, row, most).unwrap()).collect();
                // What is on the way from one rank to another.
                let mut way = vec![vec![VecDeque::new(); ranks]; ranks];
                for (rank, moves) in all.iter().enumerate() {
                    assert!(moves.others.iter().all(|m| m.peer != rank && m.sent.len() <= most), "{moves:?}");
                    for m in &moves.others {
                        way[rank][m.peer].push_back(given[rank][m.sent.clone()].to_vec());
                    }
                }
                for (rank, moves) in all.iter().enumerate() {
                    let mut to = vec![usize::MAX; ranks * row];
                    to[moves.own.received.clone()].copy_from_slice(&given[rank][moves.own.sent.clone()]);
                    for m in &moves.others {
                        to[m.received.clone()].copy_from_slice(&way[m.peer][rank].pop_front().unwrap());
                    }
                    for from in 0..ranks {
                        let sent = &given[from][rows.sent[rank] * row..][..row];
                        assert_eq!(to[rows.received[from] * row..][..row], *sent, "{ranks} ranks of {row} by {most}");
                    }
                }
                assert!(way.iter().flatten().all(VecDeque::is_empty));
            }
        }
    }

    #[test]
    fn pieces_beyond_32_bits_are_those_of_smaller_rows() {
        let (row, most) = ((1 << 33) + 5, 1 << 30);
        let own = moves(1, &rows(2, false)[0], row, most).unwrap();
        assert_eq!(own.own, Message { peer: 1, sent: row..2 * row, received: row..2 * row });
        assert_eq!(own.others.len(), 9);
        assert_eq!(own.others[8], Message { peer: 0, sent: row - 5..row, received: row - 5..row });
        assert!(own.others[..8].iter().all(|m| m.sent.len() == most));
    }

    #[test]
    fn rows_that_are_none_are_refused() {
        let refused = |sent: &[usize], received: &[usize], rank, row| {
            moves(rank, &Rows { sent: sent.to_vec(), received: received.to_vec() }, row, 8).is_none()
        };
        assert!(!refused(&[1, 0], &[0, 1], 1, 4));
        assert!(refused(&[0, 0], &[0, 1], 1, 4) && refused(&[0, 1], &[0, 2], 1, 4) && refused(&[0, 1], &[0], 1, 4));
        assert!(refused(&[0, 1], &[0, 1], 2, 4) && refused(&[0, 1], &[0, 1], 0, usize::MAX));
    }
}
