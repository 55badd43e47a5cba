//! `acked list`: the catalogue of everything, for people, programs and READMEs.

use acked_core::settings::DEFINITIONS;
use acked_sim::judge::{INVARIANTS, View};
use acked_sim::nemesis::FAULTS;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::mutations::MUTATIONS;
use crate::output::Sink;
use crate::scenario::{self, CATALOGUE, Expected};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Scenarios,
    Faults,
    Invariants,
    Settings,
    Mutations,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Human,
    Json,
    /// A table, as the README shows it
    Markdown,
}

#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    #[arg(value_enum)]
    what: What,
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
}

/// A list in every form: its columns, a row of texts for people, a row as JSON.
struct Table {
    columns: &'static [&'static str],
    rows: Vec<(Vec<String>, Value)>,
}

/// # Errors
/// An output that fails.
pub fn run(arguments: &ListArgs) -> Result<Exit, Failure> {
    let table = match arguments.what {
        What::Scenarios => scenarios()?,
        What::Faults => faults(),
        What::Invariants => invariants(),
        What::Settings => settings(),
        What::Mutations => mutations(),
    };
    let text = match arguments.format {
        Format::Human => table.human(),
        Format::Markdown => table.markdown(),
        Format::Json => {
            let rows: Vec<Value> = table.rows.into_iter().map(|(_, value)| value).collect();
            serde_json::to_string_pretty(&rows).expect("rows have string keys only") + "\n"
        }
    };
    // Whoever closes the pipe has read what it wanted.
    Sink::stdout().write(&text)?;
    Ok(Exit::Held)
}

impl Table {
    fn human(&self) -> String {
        let columns = self.columns.len();
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().map(|(row, _)| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (row, _) in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!("| {} |\n|{}\n", self.columns.join(" | "), "---|".repeat(self.columns.len()));
        for (row, _) in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text
    }
}

fn scenarios() -> Result<Table, Failure> {
    let mut rows = Vec::new();
    for entry in CATALOGUE {
        let scenario = scenario::parse(entry.path, entry.text)?;
        if scenario.unlisted {
            continue;
        }
        let promises: Vec<String> = scenario
            .configuration
            .iter()
            .map(|(name, configuration)| format!("{name}: {}", expected(configuration.expect)))
            .collect();
        let value = json!({
            "name": entry.name,
            "path": entry.path,
            "ask": scenario.ask,
            "tags": scenario.tags,
            "configurations": scenario.configuration.iter()
                .map(|(name, configuration)| json!({"name": name, "expect": expected(configuration.expect)}))
                .collect::<Vec<_>>(),
            "safety": scenario.cluster.safety,
        });
        rows.push((vec![entry.name.to_string(), scenario.ask, promises.join(", ")], value));
    }
    Ok(Table { columns: &["scenario", "asks", "acknowledged data lost"], rows })
}

fn expected(expected: Expected) -> &'static str {
    match expected {
        Expected::Never => "never",
        Expected::May => "may",
        Expected::MustLose => "must-lose",
    }
}

fn faults() -> Table {
    let rows = FAULTS
        .iter()
        .filter(|fault| fault.is_listed())
        .map(|fault| {
            let value = json!({"name": fault.name, "text": fault.text, "may_lose": fault.may_lose});
            (vec![fault.name.into(), fault.text.into(), fault.may_lose.into()], value)
        })
        .collect();
    Table { columns: &["fault", "does", "may lose"], rows }
}

fn invariants() -> Table {
    let rows = INVARIANTS
        .iter()
        .map(|invariant| {
            let sees = match invariant.view {
                View::BlackBox => "clients and logs",
                View::WhiteBox => "the broker's inside",
            };
            let value = json!({
                "id": invariant.id,
                "name": invariant.name,
                "black_box": invariant.view == View::BlackBox,
                "text": invariant.text,
            });
            (vec![invariant.id.into(), invariant.name.into(), invariant.text.into(), sees.into()], value)
        })
        .collect();
    Table { columns: &["id", "name", "holds when", "sees"], rows }
}

fn settings() -> Table {
    let rows = DEFINITIONS
        .iter()
        .map(|setting| {
            let effect = if setting.modelled() { "has an effect" } else { "no effect here" };
            let value = json!({
                "name": format!("{}.{}", setting.scope, setting.name),
                "default": setting.default,
                "valid": setting.valid,
                "modelled": setting.modelled(),
            });
            let name = format!("{}.{}", setting.scope, setting.name);
            (vec![name, setting.default.unwrap_or("null").into(), effect.into()], value)
        })
        .collect();
    Table { columns: &["setting", "Kafka's default", "here"], rows }
}

fn mutations() -> Table {
    let rows = MUTATIONS
        .iter()
        .map(|mutation| {
            let by = mutation.provoked_by;
            let provoked =
                by.map_or("nothing yet".to_string(), |by| format!("{} ({})", by.scenario, by.configuration));
            let value = json!({
                "name": mutation.name,
                "museum": mutation.museum,
                "text": mutation.text,
                "scenario": by.map(|by| by.scenario),
                "configuration": by.map(|by| by.configuration),
                "seeds": by.map(|by| by.seeds),
            });
            (vec![mutation.name.into(), mutation.museum.into(), mutation.text.into(), provoked], value)
        })
        .collect();
    Table { columns: &["mutation", "museum", "the bug", "provoked by"], rows }
}
