//! What the faults did, from what fired and never from what was planned.

use super::{Change, Moment};

/// One fault of the schedule and everything it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub id: String,
    pub kind: String,
    pub spans: Vec<Span>,
}

/// One strike of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub nodes: Vec<String>,
    pub takes_down: bool,
    pub from_us: u64,
    /// `None` for what is over as soon as it is done.
    pub to_us: Option<u64>,
}

/// Every fault that fired, in the order of its first strike.
pub fn faults(moments: &[Moment]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for moment in moments {
        let known = faults.iter_mut().find(|fault| fault.id == moment.who);
        match &moment.change {
            Change::FaultBegan { kind, nodes, takes_down } => {
                let (nodes, takes_down) = (nodes.clone(), *takes_down);
                let span = Span { nodes, takes_down, from_us: moment.t_us, to_us: None };
                match known {
                    Some(fault) => fault.spans.push(span),
                    None => {
                        let (id, kind) = (moment.who.clone(), kind.clone());
                        faults.push(Fault { id, kind, spans: vec![span] });
                    }
                }
            }
            // Several cuts or victims of one fault are one until it heals.
            Change::FaultEnded => {
                for span in known.into_iter().flat_map(|fault| &mut fault.spans) {
                    span.to_us.get_or_insert(moment.t_us);
                }
            }
            _ => {}
        }
    }
    faults
}
