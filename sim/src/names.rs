//! What nodes are called wherever a person reads of them.

use acked_core::NodeId;

/// Node ids of controllers are this plus their number; those of brokers are their number.
pub const CONTROLLER_BASE: i32 = 100;

/// `b1` or `c1`.
pub fn node_name(node: NodeId) -> String {
    if node.0 > CONTROLLER_BASE { format!("c{}", node.0 - CONTROLLER_BASE) } else { format!("b{}", node.0) }
}

/// Several, with spaces between.
pub fn node_names(nodes: &[NodeId]) -> String {
    nodes.iter().map(|node| node_name(*node)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_and_controllers_are_told_apart() {
        assert_eq!(node_names(&[NodeId(1), NodeId(101)]), "b1 c1");
    }
}
