//! The Merkle tree of RFC 6962, section 2, stored in tiles.
//!
//! A hash on tile level `l` covers 256^l leaves; a tile holds up to 256
//! neighbouring hashes of one level. A proof can be computed from
//! a few tiles, and only the last tile of a level ever grows.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use sha2::{Digest as _, Sha256};

/// SHA-256 of a leaf or of a node.
pub type Hash = [u8; 32];

/// Number of hashes in a full tile.
pub const TILE: u64 = 256;

/// Levels of the tree within one tile.
const TILE_HEIGHT: u32 = 8;

/// RFC 6962: `SHA-256(0x00 || leaf)`.
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    Sha256::new()
        .chain_update([0])
        .chain_update(leaf)
        .finalize()
        .into()
}

/// RFC 6962: `SHA-256(0x01 || left || right)`.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new()
        .chain_update([1])
        .chain_update(left)
        .chain_update(right)
        .finalize()
        .into()
}

/// Parses a hash from hex.
pub fn parse(text: &str) -> Option<Hash> {
    hex::decode(text).ok()?.try_into().ok()
}

/// Coordinates of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileId {
    /// Level, from 0 for the tiles that hold leaf hashes.
    pub level: u32,
    /// Index from the left.
    pub index: u64,
}

impl TileId {
    /// Returns the tile that holds a leaf.
    pub fn of_leaf(index: u64) -> Self {
        place(0, index).0
    }
}

/// Subset of a log's tiles, loaded for one computation.
#[derive(Clone, Debug, Default)]
pub struct TileReader(HashMap<TileId, Vec<Hash>>);

/// Error: a hash that the computation needs is missing from the loaded tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log has no hash {position} in tile {}/{}", tile.level, tile.index)]
pub struct MissingTile {
    /// Tile that should hold the hash.
    pub tile: TileId,
    /// Index of the hash within the tile.
    pub position: usize,
}

/// Returns the tiles on the right edge of a tree of `size` leaves: those that grow next.
pub fn edge(size: u64) -> Vec<TileId> {
    (0..)
        // A size has 64 bits: a wider shift means that the tree has no such level.
        .map_while(|level| {
            let hashes = size.checked_shr(TILE_HEIGHT * level)?;
            (level == 0 || hashes > 0).then_some(TileId {
                level,
                index: hashes / TILE,
            })
        })
        .collect()
}

impl TileReader {
    /// Adds a tile.
    pub fn insert(&mut self, id: TileId, hashes: Vec<Hash>) {
        self.0.insert(id, hashes);
    }

    /// Returns the hashes of a tile.
    pub fn get(&self, id: TileId) -> Option<&[Hash]> {
        self.0.get(&id).map(Vec::as_slice)
    }

    /// Appends a leaf to a tree of `size` leaves. Needs the tiles of [`edge`]; returns
    /// the tiles that changed.
    pub fn append(&mut self, size: u64, leaf: Hash) -> Result<Vec<TileId>, MissingTile> {
        let mut changed = Vec::new();
        let (mut hash, mut index) = (leaf, size);
        for level in 0.. {
            let id = TileId {
                level,
                index: index / TILE,
            };
            let position = (index % TILE) as usize;
            let tile = self.0.entry(id).or_default();
            // With a stale tile the hash would get a wrong place, and the
            // root would be wrong without an error.
            if tile.len() != position {
                return Err(MissingTile { tile: id, position });
            }

            tile.push(hash);
            changed.push(id);

            // Only a full tile has a hash on the level above.
            if tile.len() < TILE as usize {
                break;
            }

            hash = root(tile);
            index = id.index;
        }

        Ok(changed)
    }

    /// Returns the hash of the leaf with this index.
    pub fn leaf(&self, index: u64) -> Result<Hash, MissingTile> {
        self.subtree(0, index)
    }

    /// Computes the root of the first `size` leaves; the root of an empty tree is the SHA-256 of
    /// the empty string.
    pub fn root(&self, size: u64) -> Result<Hash, MissingTile> {
        if size == 0 {
            return Ok(Sha256::digest([]).into());
        }
        self.span(&(0..size))
    }

    /// Computes the proof that the leaf `index` is among the first `size` (RFC 6962,
    /// section 2.1.1).
    pub fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, MissingTile> {
        let spans = inclusion(index, size);
        spans.iter().map(|span| self.span(span)).collect()
    }

    /// Computes the proof that the tree of `old` leaves is a prefix of the tree of `size` leaves
    /// (RFC 6962, section 2.1.2).
    pub fn consistency(&self, old: u64, size: u64) -> Result<Vec<Hash>, MissingTile> {
        let spans = consistency(old, size);
        spans.iter().map(|span| self.span(span)).collect()
    }

    /// Computes the hash over a range of leaves, split as in RFC 6962.
    fn span(&self, span: &Range<u64>) -> Result<Hash, MissingTile> {
        let mut subtrees = subtrees(span).into_iter().rev();
        // RFC 6962 defines the root of an empty tree as the hash of the empty string.
        let Some((level, index)) = subtrees.next() else {
            return Ok(Sha256::digest([]).into());
        };
        let last = self.subtree(level, index)?;
        // RFC 6962 splits at the largest power of two, so the small subtrees on the right are joined first.
        subtrees.try_fold(last, |right, (level, index)| {
            Ok(node_hash(&self.subtree(level, index)?, &right))
        })
    }

    /// Computes the root of the full subtree of 2^`level` leaves with this index.
    fn subtree(&self, level: u32, index: u64) -> Result<Hash, MissingTile> {
        let (id, positions) = place(level, index);
        let tile = self.0.get(&id).map(Vec::as_slice).unwrap_or_default();
        // A missing tile is an error and no empty one: a root over too few leaves would be a false proof.
        let hashes = tile.get(positions.clone()).ok_or(MissingTile {
            tile: id,
            position: positions.end - 1,
        })?;
        Ok(root(hashes))
    }
}

/// Returns the tiles that [`TileReader::inclusion`] needs, including the tile of the leaf.
pub fn tiles_of_inclusion(index: u64, size: u64) -> Vec<TileId> {
    let mut tiles = tiles_of(&inclusion(index, size));
    tiles.push(TileId::of_leaf(index));
    tiles
}

/// Returns the tiles that [`TileReader::consistency`] needs.
pub fn tiles_of_consistency(old: u64, size: u64) -> Vec<TileId> {
    tiles_of(&consistency(old, size))
}

/// Returns the tiles that [`TileReader::root`] needs.
pub fn tiles_of_root(size: u64) -> Vec<TileId> {
    tiles_of(std::slice::from_ref(&(0..size)))
}

fn tiles_of(spans: &[Range<u64>]) -> Vec<TileId> {
    let mut tiles: Vec<TileId> = spans
        .iter()
        .flat_map(subtrees)
        .map(|(level, index)| place(level, index).0)
        .collect();
    // Neighbouring spans share tiles, and the caller reads each row once.
    tiles.sort_unstable();
    tiles.dedup();
    tiles
}

/// Returns the tile that contains a full subtree, and the range of its hashes there.
fn place(level: u32, index: u64) -> (TileId, Range<usize>) {
    let within = level % TILE_HEIGHT;
    let first = index << within;
    let id = TileId {
        level: level / TILE_HEIGHT,
        index: first / TILE,
    };
    let start = (first % TILE) as usize;
    (id, start..start + (1 << within))
}

/// Computes the root of a power of two of neighbouring hashes.
fn root(hashes: &[Hash]) -> Hash {
    match hashes {
        [] => Sha256::digest([]).into(),
        [hash] => *hash,
        _ => {
            let (left, right) = hashes.split_at(hashes.len() / 2);
            node_hash(&root(left), &root(right))
        }
    }
}

/// Returns `k` of RFC 6962: the largest power of two below `size`. `size` must be above 1.
fn split(size: u64) -> u64 {
    1 << (63 - (size - 1).leading_zeros())
}

/// Returns the full subtrees (level, index) that make up a span, from the left.
fn subtrees(span: &Range<u64>) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    let mut start = span.start;
    while start < span.end {
        let left = span.end - start;
        // A full subtree starts at a multiple of its size, and must not reach beyond the span.
        let level = (63 - left.leading_zeros()).min(start.trailing_zeros());
        found.push((level, start >> level));
        start += 1 << level;
    }

    found
}

fn inclusion(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut spans = Vec::new();
    // The walk goes from the root down; RFC 6962 lists a proof from the
    // leaf up, hence the reversal at the end.
    let (mut start, mut end) = (0, size);
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            spans.push(middle..end);
            end = middle;
        } else {
            spans.push(start..middle);
            start = middle;
        }
    }

    spans.reverse();
    spans
}

fn consistency(old: u64, size: u64) -> Vec<Range<u64>> {
    // A verifier needs no hashes here: it compares the roots, or has nothing to compare.
    if old == 0 || old == size {
        return Vec::new();
    }

    let mut spans = Vec::new();
    let (mut start, mut end) = (0, size);
    let mut whole = true;
    while old != end {
        let middle = start + split(end - start);
        if old <= middle {
            spans.push(middle..end);
            end = middle;
        } else {
            spans.push(start..middle);
            start = middle;
            whole = false;
        }
    }

    // The verifier knows the root of an old tree that is a whole left subtree, so the proof omits it.
    if !whole {
        spans.push(start..end);
    }

    spans.reverse();
    spans
}

/// Whether `proof` shows that a leaf with this hash is the leaf `index` of the
/// tree with this size and root (RFC 9162, section 2.1.3.2).
pub fn includes(leaf: Hash, index: u64, proof: &[Hash], size: u64, expected: &Hash) -> bool {
    if index >= size {
        return false;
    }

    let (mut first, mut last) = (index, size - 1);
    let mut hash = leaf;
    for sibling in proof {
        // The proof is longer than the tree is deep. Without this, extra hashes could be made to fit.
        if last == 0 {
            return false;
        }

        if first & 1 == 1 || first == last {
            hash = node_hash(sibling, &hash);
            // A node without a right sibling moves up unchanged, so its levels have no hash in the proof.
            while first & 1 == 0 && first != 0 {
                first >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(&hash, sibling);
        }

        first >>= 1;
        last >>= 1;
    }

    last == 0 && hash == *expected
}

/// Whether `proof` shows that the tree of size `old` is the beginning of that of
/// `size` (RFC 9162, section 2.1.4.2).
pub fn extends(old: u64, old_root: &Hash, proof: &[Hash], size: u64, root: &Hash) -> bool {
    if old == size {
        return proof.is_empty() && old_root == root;
    }
    if old > size {
        return false;
    }
    if old == 0 {
        return proof.is_empty();
    }

    // Both roots come from the same hashes. That shows that the new tree begins with the old one.
    proven_roots(old, old_root, proof, size) == Some((*old_root, *root))
}

/// Whether `proof` shows that the tree of `size` with this root begins with another tree of size `old` than the one
/// with `old_root`. A proof that merely fails shows nothing: anybody can make one. No proof shows it for a power of two
/// below `size`, where the verifier itself brings the old root.
pub fn contradicts(old: u64, old_root: &Hash, proof: &[Hash], size: u64, root: &Hash) -> bool {
    if old == size {
        return old_root != root;
    }
    if old == 0 || old > size {
        return false;
    }

    let proven = proven_roots(old, old_root, proof, size);
    proven.is_some_and(|(before, now)| now == *root && before != *old_root)
}

/// Computes the roots of both trees from a consistency proof; `None` if it has another length. `old` has to be from 1
/// to below `size`.
fn proven_roots(old: u64, old_root: &Hash, proof: &[Hash], size: u64) -> Option<(Hash, Hash)> {
    // The old tree of a power of two is itself a node of the new tree, so the proof omits it.
    let own_root = old.is_power_of_two().then_some(*old_root);
    let mut proof = own_root.iter().chain(proof);
    let start = proof.next()?;

    let (mut first, mut last) = (old - 1, size - 1);
    // The proof begins with the largest full subtree at the old tree's end, so the levels below have no hash.
    while first & 1 == 1 {
        first >>= 1;
        last >>= 1;
    }

    let (mut before, mut now) = (*start, *start);
    for hash in proof {
        if last == 0 {
            return None;
        }

        if first & 1 == 1 || first == last {
            before = node_hash(hash, &before);
            now = node_hash(hash, &now);
            while first & 1 == 0 && first != 0 {
                first >>= 1;
                last >>= 1;
            }
        } else {
            now = node_hash(&now, hash);
        }

        first >>= 1;
        last >>= 1;
    }

    (last == 0).then_some((before, now))
}

/// Nodes of one tree, as far as proofs have shown them. The more proofs, the more roots of earlier
/// trees of the same log can be computed.
#[derive(Clone, Debug)]
pub struct ProvenNodes {
    size: u64,
    root: Hash,
    /// Hashes by the first leaf that they cover, and the first that they do not.
    nodes: BTreeMap<(u64, u64), Hash>,
}

impl ProvenNodes {
    /// Begins with the root of a tree.
    pub fn new(size: u64, root: Hash) -> Self {
        Self {
            size,
            root,
            nodes: BTreeMap::from([((0, size), root)]),
        }
    }

    /// Adds the nodes of an inclusion proof. Returns false, and adds nothing, if it does not hold.
    pub fn add_inclusion(&mut self, leaf: Hash, index: u64, proof: &[Hash]) -> bool {
        if !includes(leaf, index, proof, self.size, &self.root) {
            return false;
        }

        // Nodes enter only after the proof held, so each of them is below the trusted root.
        self.nodes.insert((index, index + 1), leaf);
        self.add(&inclusion(index, self.size), proof);
        true
    }

    /// Adds the nodes of a consistency proof. Returns false, and adds nothing, if it does not hold.
    pub fn add_consistency(&mut self, old: u64, old_root: Hash, proof: &[Hash]) -> bool {
        // Every tree extends the empty one, for any claimed root.
        if old == 0 || !extends(old, &old_root, proof, self.size, &self.root) {
            return false;
        }

        self.nodes.insert((0, old), old_root);
        self.add(&consistency(old, self.size), proof);
        true
    }

    fn add(&mut self, spans: &[Range<u64>], proof: &[Hash]) {
        let places = spans.iter().map(|span| (span.start, span.end));
        self.nodes.extend(places.zip(proof.iter().copied()));
    }

    /// Computes the root of the first `size` leaves; `None` unless the known nodes suffice.
    pub fn root_of(&self, size: u64) -> Option<Hash> {
        match size {
            0 => Some(Sha256::digest([]).into()),
            size if size > self.size => None,
            size => self.span(0, size),
        }
    }

    fn span(&self, start: u64, end: u64) -> Option<Hash> {
        if let Some(known) = self.nodes.get(&(start, end)) {
            return Some(*known);
        }

        // Without this, a span of which nothing is known would be halved down to its leaves.
        let mut inside = self.nodes.range((start, 0)..(end, 0));
        if end - start == 1 || !inside.any(|((_, until), _)| *until <= end) {
            return None;
        }

        let middle = start + split(end - start);
        let right = self.span(middle, end)?;
        Some(node_hash(&self.span(start, middle)?, &right))
    }
}

#[cfg(test)]
mod tests {
    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use ct_merkle::{ConsistencyProof, InclusionProof, RootHash};
    use proptest::prelude::*;

    use super::*;

    /// Builds a log of leaves `0`, `1`, …, with all its tiles.
    fn log(size: u64) -> TileReader {
        let mut tiles = TileReader::default();
        for index in 0..size {
            tiles
                .append(index, leaf_hash(&index.to_be_bytes()))
                .unwrap();
        }
        tiles
    }

    /// Builds the same log with another implementation.
    fn independent(size: u64) -> MemoryBackedTree<sha2_next::Sha256, Vec<u8>> {
        let mut tree = MemoryBackedTree::new();
        for index in 0..size {
            tree.push(index.to_be_bytes().to_vec());
        }
        tree
    }

    /// Another history with the same first leaf, and every proof of it.
    #[test]
    fn only_a_proof_of_another_history_contradicts() {
        let (ours, mut theirs) = (log(20), TileReader::default());
        for index in 0..20_u64 {
            let leaf = if index == 0 { 0 } else { index + 100 };
            theirs
                .append(index, leaf_hash(&leaf.to_be_bytes()))
                .unwrap();
        }

        for (old, size) in (2..20_u64).flat_map(|old| (old..=20).map(move |size| (old, size))) {
            let known = ours.root(old).unwrap();
            let root = theirs.root(size).unwrap();
            let proof = theirs.consistency(old, size).unwrap();
            let shows = old == size || !old.is_power_of_two();
            assert_eq!(contradicts(old, &known, &proof, size, &root), shows);

            // A wrong proof for a head of the same history, and a right one.
            let root = ours.root(size).unwrap();
            assert!(!contradicts(old, &known, &proof, size, &root));
            let proof = ours.consistency(old, size).unwrap();
            assert!(!contradicts(old, &known, &proof, size, &root));
        }
    }

    /// Compares with the vectors of the reference implementation of RFC 6962.
    #[test]
    fn merkle_roots_match_the_reference() {
        let leaves = [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ];

        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];

        let mut tiles = TileReader::default();
        assert_eq!(hex::encode(tiles.root(0).unwrap()), roots[0]);

        for (size, (leaf, root)) in (1..).zip(leaves.iter().zip(&roots[1..])) {
            let leaf = leaf_hash(&hex::decode(leaf).unwrap());
            tiles.append(size - 1, leaf).unwrap();
            assert_eq!(hex::encode(tiles.root(size).unwrap()), *root, "{size}");
        }
    }

    #[test]
    fn a_multi_level_log_matches_another_implementation() {
        const SIZE: u64 = 256 * 256 + 300;

        let tiles = log(SIZE);
        let tree = independent(SIZE);
        let theirs = tree.root();
        let root = tiles.root(SIZE).unwrap();
        assert_eq!(root.as_slice(), theirs.as_bytes().as_slice());

        for index in [0, 1, 255, 256, 65_535, 65_536, SIZE - 1] {
            let proof = tiles.inclusion(index, SIZE).unwrap();
            let leaf = leaf_hash(&index.to_be_bytes());
            assert!(includes(leaf, index, &proof, SIZE, &root));
            let theirs = tree.prove_inclusion(index as usize);
            assert_eq!(proof.concat(), theirs.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn proofs_match_another_implementation(size in 1..1500u64, at in 0.0..1.0f64) {
            let tiles = log(size);
            let tree = independent(size);
            let root = tiles.root(size).unwrap();
            let theirs = tree.root();
            prop_assert_eq!(root.as_slice(), theirs.as_bytes().as_slice());

            let index = (at * size as f64) as u64;
            let leaf = leaf_hash(&index.to_be_bytes());
            let proof = tiles.inclusion(index, size).unwrap();
            let theirs = tree.prove_inclusion(index as usize);
            prop_assert_eq!(proof.concat(), theirs.as_bytes());
            prop_assert!(includes(leaf, index, &proof, size, &root));
            let theirs = InclusionProof::<sha2_next::Sha256>::try_from_bytes(proof.concat()).unwrap();
            let leaf = index.to_be_bytes().to_vec();
            prop_assert!(tree.root().verify_inclusion(&leaf, index, &theirs).is_ok());

            let old = index + 1;
            let old_root = tiles.root(old).unwrap();
            let proof = tiles.consistency(old, size).unwrap();
            prop_assert!(extends(old, &old_root, &proof, size, &root));
            if old < size {
                let added = (size - old) as usize;
                let theirs = tree.prove_consistency(added);
                prop_assert_eq!(proof.concat(), theirs.as_bytes());
                let theirs =
                    ConsistencyProof::<sha2_next::Sha256>::try_from_bytes(proof.concat()).unwrap();
                let before = RootHash::new(old_root.into(), old);
                prop_assert!(tree.root().verify_consistency(&before, &theirs).is_ok());
            }
        }

        /// Changes each input of the verification in turn.
        #[test]
        fn a_wrong_proof_is_refused(size in 2..600u64, at in 0.0..1.0f64, bit in 0..256usize) {
            let tiles = log(size);
            let root = tiles.root(size).unwrap();
            let index = (at * size as f64) as u64;
            let leaf = leaf_hash(&index.to_be_bytes());
            let proof = tiles.inclusion(index, size).unwrap();
            let flipped = |hash: &Hash| {
                let mut hash = *hash;
                hash[bit / 8] ^= 1 << (bit % 8);
                hash
            };
            prop_assert!(!includes(flipped(&leaf), index, &proof, size, &root));
            prop_assert!(!includes(leaf, index, &proof, size, &flipped(&root)));
            prop_assert!(!includes(leaf, index + size, &proof, size, &root));
            prop_assert!(!includes(leaf, index, &proof[1..], size, &root));
            let mut longer = proof.clone();
            longer.push(leaf);
            prop_assert!(!includes(leaf, index, &longer, size, &root));
            for position in 0..proof.len() {
                let mut wrong = proof.clone();
                wrong[position] = flipped(&wrong[position]);
                prop_assert!(!includes(leaf, index, &wrong, size, &root));
            }

            let old = index.max(1);
            let old_root = tiles.root(old).unwrap();
            let proof = tiles.consistency(old, size).unwrap();
            prop_assert!(!extends(old, &flipped(&old_root), &proof, size, &root));
            prop_assert!(!extends(old, &old_root, &proof, size, &flipped(&root)));
            prop_assert!(!extends(size + 1, &old_root, &proof, size, &root));
            for position in 0..proof.len() {
                let mut wrong = proof.clone();
                wrong[position] = flipped(&wrong[position]);
                prop_assert!(!extends(old, &old_root, &wrong, size, &root));
            }
        }
    }

    /// Computes each proof from the tiles that its `tiles_of_…` function names.
    #[test]
    fn the_named_tiles_suffice_for_a_proof() {
        const SIZE: u64 = 700;

        let all = log(SIZE);
        let only = |ids: Vec<TileId>| {
            let mut some = TileReader::default();
            for id in ids {
                some.insert(id, all.get(id).unwrap().to_vec());
            }
            some
        };
        for index in [0, 255, 256, 511, 512, 699] {
            let some = only(tiles_of_inclusion(index, SIZE));
            assert_eq!(some.inclusion(index, SIZE), all.inclusion(index, SIZE));
            assert_eq!(some.leaf(index), all.leaf(index));
            let some = only(tiles_of_consistency(index, SIZE));
            assert_eq!(some.consistency(index, SIZE), all.consistency(index, SIZE));
        }

        let some = only(tiles_of_root(SIZE));
        assert_eq!(some.root(SIZE), all.root(SIZE));

        let mut growing = only(edge(SIZE));
        growing.append(SIZE, leaf_hash(b"next")).unwrap();
        let missing = TileReader::default().root(SIZE).unwrap_err();
        assert_eq!((missing.tile.level, missing.tile.index), (0, 2));
    }

    #[test]
    fn inclusion_proofs_give_the_roots_of_earlier_trees() {
        let tiles = log(11);
        let mut nodes = ProvenNodes::new(11, tiles.root(11).unwrap());
        let leaf = |index: u64| leaf_hash(&index.to_be_bytes());
        let proof = tiles.inclusion(5, 11).unwrap();
        assert!(nodes.add_inclusion(leaf(5), 5, &proof));

        // The proof has the nodes 4, 6..8, 0..4 and 8..11.
        for size in [4, 5, 6, 8, 11] {
            assert_eq!(nodes.root_of(size), tiles.root(size).ok(), "{size}");
        }

        for size in [1, 2, 3, 7, 9, 10, 12] {
            assert_eq!(nodes.root_of(size), None, "{size}");
        }
        assert!(!nodes.add_inclusion(leaf(6), 5, &proof));
    }

    #[test]
    fn a_consistency_proof_gives_the_root_of_its_earlier_tree() {
        for size in 1..40 {
            let tiles = log(size);
            for old in 1..=size {
                let mut nodes = ProvenNodes::new(size, tiles.root(size).unwrap());
                let (root, proof) = (tiles.root(old), tiles.consistency(old, size));
                let (root, proof) = (root.unwrap(), proof.unwrap());
                assert!(!nodes.add_consistency(old, [0; 32], &proof));
                assert!(nodes.add_consistency(old, root, &proof), "{old} of {size}");

                for known in 0..=size {
                    let computed = nodes.root_of(known);
                    assert!(computed.is_none_or(|root| root == tiles.root(known).unwrap()));
                }
                assert_eq!(nodes.root_of(old), Some(root), "{old} of {size}");
            }
        }
    }

    #[test]
    fn all_leaves_give_the_roots_of_all_earlier_trees() {
        let tiles = log(300);
        let mut nodes = ProvenNodes::new(300, tiles.root(300).unwrap());
        for index in 0..300 {
            let proof = tiles.inclusion(index, 300).unwrap();
            assert!(nodes.add_inclusion(leaf_hash(&index.to_be_bytes()), index, &proof));
        }

        for size in 0..=300 {
            assert_eq!(nodes.root_of(size), tiles.root(size).ok());
        }
        assert_eq!(nodes.root_of(301), None);
    }
}
