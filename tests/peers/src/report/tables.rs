//! The tables, as Markdown.

use std::fmt::Write as _;

use super::{Left, Line, Reached, Report, median, plots};
use crate::{Options, floor::Floor};

/// A number with as many digits as say something.
fn short(number: f64) -> String {
    if number >= 100.0 {
        let digits = format!("{number:.0}");
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    } else {
        format!("{number:.1}")
    }
}

/// The tables.
pub(super) fn markdown(report: &Report, options: &Options) -> String {
    let mut text = String::new();
    let median_of = |of: fn(&Floor) -> f64| short(median(report.floor.iter().map(of)));
    let _infallible = writeln!(
        text,
        "Floor of this run, medians: a sync of 4 KiB takes {} µs, three files at once {} µs each; a \
         round trip between two threads {} µs.\n",
        median_of(|floor| floor.sync_us),
        median_of(|floor| floor.three_syncs_us),
        median_of(|floor| floor.round_trip_us),
    );
    targets(&mut text, report);
    for kind in options.kinds() {
        let lines: Vec<_> = report.rows.iter().filter(|line| line.row.kind == kind).collect();
        let _infallible = writeln!(text, "### {}\n\n{}\n", kind.name(), kind.what());
        if options.into.is_some() && plots::is_drawn(kind) {
            let _infallible = writeln!(text, "![{0}]({0}.svg)\n", kind.name());
        }
        text.push_str(
            "| system | clients | operations/s | least to greatest | p50 µs | p99 µs | tries | bytes \
             sent | syncs/s | others |\n|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for line in lines {
            text.push_str(&table_row(line));
        }
        text.push('\n');
    }
    for Left { system, work, size, why } in &report.left_out {
        let _infallible = writeln!(text, "- {work} {size} is left out on {system}: {why}.");
    }
    for line in &report.rows {
        if let Line { system, work, clients, capped_to_rounds: Some(rounds), .. } = line {
            let _infallible =
                writeln!(text, "- {work} {clients} is capped on {system} to {rounds} rounds.");
        }
    }
    text
}

/// What is aimed at, beside what was reached.
fn targets(text: &mut String, report: &Report) {
    if report.targets.is_empty() {
        return;
    }
    text.push_str("| aimed at | bound | reached | |\n|---|---|---|---|\n");
    for Reached { target, bound, reached, is_met } in &report.targets {
        let met = if *is_met { "yes" } else { "no" };
        let _infallible = writeln!(text, "| {target} | {bound} | {} | {met} |", exact(*reached));
    }
    text.push('\n');
}

/// A ratio, or a number.
fn exact(number: f64) -> String {
    if number < 10.0 { format!("{number:.2}") } else { short(number) }
}

fn table_row(line: &Line) -> String {
    let size = line.queue_size.map_or_else(
        || line.clients.to_string(),
        |size| format!("1, {} items", short(size as f64)),
    );
    let syncs: Vec<_> = line.fsyncs_per_second.iter().map(|count| format!("{count:.0}")).collect();
    let optional = |value: Option<f64>| value.map_or_else(|| "?".into(), short);
    format!(
        "| {} | {size} | {} | {} to {} | {} | {} | {:.1} | {} | {} | {} |\n",
        line.system,
        short(line.ops_per_second),
        short(line.spread.least),
        short(line.spread.greatest),
        short(line.p50_us),
        short(line.p99_us),
        line.attempts_per_op,
        optional(line.bytes_per_op),
        syncs.join(", "),
        line.other_cpu.map_or_else(|| "?".into(), |value| format!("{value:.2}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let numbers = [0.26, 99.94, 100.0, 999.6, 1_234_567.0].map(short);
        assert_eq!(numbers, ["0.3", "99.9", "100", "1,000", "1,234,567"]);
    }
}
