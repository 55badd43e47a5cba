//! `alter-config`: an administrator changes a setting of a topic while it is in use, and sets it back after the fault's
//! time if told to what.

use acked_core::settings::{Scope, Settings};

use super::{Class, FaultKind, Firing, Occasion, only_arguments};
use crate::plan::FaultPlan;

pub const ALTER_CONFIG: FaultKind = FaultKind {
    name: "alter-config",
    text: "a setting of `topic` becomes `set` (`min.insync.replicas=2`) under load, and `then` after `for`, if that is said",
    may_lose: "what the new setting does not protect",
    class: Class::Disturbs,
    check,
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

fn check(plan: &FaultPlan) -> Result<(), String> {
    if !plan.nodes.is_empty() || plan.sides.is_some() {
        return Err("alter-config takes topic = \"…\" and set = \"name=value\", no nodes".into());
    }
    only_arguments(plan, &["topic", "set", "then"])?;
    if !plan.arguments.contains_key("topic") || !plan.arguments.contains_key("set") {
        return Err(
            "alter-config needs topic = \"orders\" and set = \"min.insync.replicas=2\" or the like".into()
        );
    }
    for argument in ["set", "then"] {
        if let Some(text) = plan.arguments.get(argument) {
            setting(text)?;
        }
    }
    Ok(())
}

/// `name=value`, as Kafka has it for topics.
fn setting(text: &str) -> Result<(&str, &str), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is no name=value"))?;
    let mut settings = Settings::default_for(Scope::Topic);
    let _ = settings.set(name, value).map_err(|error| error.to_string())?;
    Ok((name, value))
}

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let mut changed = 0;
    for (argument, wait) in [("set", None), ("then", Some(lasts))] {
        let Some(text) = plan.arguments.get(argument) else { continue };
        if let Some(wait) = wait {
            cluster.sleep(wait).await;
        }
        let (name, value) = setting(text).expect("checked when the plan was made");
        changed += u64::from(cluster.alter_topic(&plan, &plan.arguments["topic"], name, value).await);
    }
    changed
}
