//! Trees of ranks for all-reduce.

#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Parent of each rank; `None`: it is the root.
    pub(super) parent: Vec<Option<u32>>,
    /// The ranks, parents before children.
    pub(super) from_root: Vec<u32>,
    /// Longest way down from each rank.
    pub(super) height: Vec<u32>,
    /// Way up from each rank.
    pub(super) depth: Vec<u32>,
}

impl Tree {
    fn new(parent: Vec<Option<u32>>) -> Self {
        let ranks = parent.len();
        let depth: Vec<u32> = (0..ranks)
            .map(|rank| std::iter::successors(parent[rank], |&up| parent[up as usize]).count() as u32)
            .collect();
        let mut from_root: Vec<u32> = (0..ranks as u32).collect();
        from_root.sort_by_key(|&rank| depth[rank as usize]);
        let mut height = vec![0; ranks];
        for &rank in from_root.iter().rev() {
            if let Some(up) = parent[rank as usize] {
                height[up as usize] = height[up as usize].max(height[rank as usize] + 1);
            }
        }
        Tree { parent, from_root, height, depth }
    }

    /// Binary tree in which the children of rank r are 2r+1 and 2r+2.
    pub(super) fn binary(ranks: u32) -> Self {
        Tree::new((0..ranks).map(|rank| rank.checked_sub(1).map(|below| below / 2)).collect())
    }

    /// The two trees of Sanders, Speck and Träff (Parallel Computing 35, 2009, section 3): binary trees in the order of
    /// the ranks, whose leaves are every second rank; the second is shifted by one rank, so that its inner nodes are
    /// leaves of the first.
    pub(super) fn double(ranks: u32) -> [Self; 2] {
        [0, 1].map(|shift| {
            let rank_at = |position: u32| (position + ranks - shift) % ranks;
            let parent = |rank: u32| above((rank + shift) % ranks + 1, ranks).map(|above| rank_at(above - 1));
            Tree::new((0..ranks).map(parent).collect())
        })
    }

    /// Number of steps from the deepest rank to the root.
    pub(super) fn levels(&self) -> u32 {
        self.depth.iter().max().copied().unwrap_or(0)
    }
}

/// Returns the parent of node `node` of the binary tree in order of the nodes 1 to `nodes`, where odd nodes are leaves.
fn above(node: u32, nodes: u32) -> Option<u32> {
    let up = |node: u32| {
        let lowest = node & node.wrapping_neg();
        (node ^ lowest) | lowest << 1
    };
    let root = 1 << nodes.ilog2();
    // Nodes beyond the last one are passed over.
    (node != root)
        .then(|| std::iter::successors(Some(up(node)), |&node| Some(up(node))).find(|up| *up <= nodes))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(tree: &Tree) -> Vec<usize> {
        let mut children = vec![0; tree.parent.len()];
        tree.parent.iter().flatten().for_each(|&up| children[up as usize] += 1);
        children
    }

    #[test]
    fn a_rank_is_inner_in_one_of_the_two_trees() {
        for ranks in 2..200 {
            let trees = Tree::double(ranks);
            let [one, two] = [0, 1].map(|at| children(&trees[at]));
            assert!(one.iter().chain(&two).all(|number| *number <= 2), "{ranks}");
            assert!(one.iter().zip(&two).all(|(one, two)| *one == 0 || *two == 0), "{ranks}");
            for tree in &trees {
                assert_eq!(tree.parent.iter().filter(|up| up.is_none()).count(), 1);
                assert_eq!(tree.from_root.len() as u32, ranks);
                // A path of the tree in order is at most log2 n long.
                assert!(tree.levels() <= ranks.ilog2(), "{ranks}: {}", tree.levels());
            }
        }
    }

    /// Nodes 1 to 6: 4 is the root of 2 (1, 3) and 6 (5).
    #[test]
    fn trees_of_six_ranks() {
        let [one, two] = Tree::double(6);
        assert_eq!(one.parent, [Some(1), Some(3), Some(1), None, Some(5), Some(3)]);
        // Each rank is one place further: rank 5 at node 1, rank 0 at node 2.
        assert_eq!(two.parent, [Some(2), Some(0), None, Some(4), Some(2), Some(0)]);
        let binary = Tree::binary(6);
        assert_eq!(binary.parent, [None, Some(0), Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!((binary.height, binary.from_root), (vec![2, 1, 1, 0, 0, 0], vec![0, 1, 2, 3, 4, 5]));
    }
}
