//! The figures, drawn: of each work, operations a second, the median of latencies and the bytes that
//! clients send, over the number of clients.

use std::{error::Error, ops::Range, path::Path};

use plotters::{
    coord::Shift,
    prelude::{
        BLACK, ChartBuilder, Color as _, DrawingArea, IntoDrawingArea as _, IntoLogRange as _,
        LineSeries, PathElement, RGBColor, SVGBackend, SeriesLabelPosition, WHITE,
    },
};

use super::{Line, Report};
use crate::{rows::Kind, run::Name};

/// Of one panel, pixels.
const PANEL: (u32, u32) = (400, 320);

type Result = std::result::Result<(), Box<dyn Error + Send + Sync>>;

/// What a panel shows.
struct Panel {
    title: &'static str,
    of: fn(&Line) -> Option<f64>,
}

const PANELS: [Panel; 3] = [
    Panel { title: "operations/s", of: |line| Some(line.ops_per_second) },
    Panel { title: "p50, ms", of: |line| Some(line.p50_us / 1e3) },
    Panel { title: "bytes sent per operation", of: |line| line.bytes_per_op },
];

/// Whether there is something to draw: a line needs two sizes at least.
pub(super) fn is_drawn(kind: Kind) -> bool {
    kind.rows().len() > 1 && kind != Kind::Regular
}

/// Draws a file for each kind.
pub(super) fn draw(report: &Report, kinds: &[Kind], folder: &Path) -> Result {
    for kind in kinds.iter().copied().filter(|kind| is_drawn(*kind)) {
        let lines: Vec<_> = report.rows.iter().filter(|line| line.row.kind == kind).collect();
        let path = folder.join(format!("{}.svg", kind.name()));
        let size = (PANEL.0 * PANELS.len() as u32, PANEL.1);
        let root = SVGBackend::new(&path, size).into_drawing_area();
        root.fill(&WHITE)?;
        for (panel, area) in PANELS.iter().zip(root.split_evenly((1, PANELS.len()))) {
            draw_panel(panel, kind, &lines, &area)?;
        }
        root.present()?;
    }
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_panel(panel: &Panel, kind: Kind, lines: &[&Line], area: &Area<'_>) -> Result {
    let point = |line: &&Line| Some((line.row.size as f64, (panel.of)(line)?));
    let points: Vec<_> = lines.iter().filter_map(point).collect();
    let Some(xs) = range(points.iter().map(|(x, _)| *x)) else { return Ok(()) };
    let Some(ys) = range(points.iter().map(|(_, y)| *y)) else { return Ok(()) };
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: {}", kind.name(), panel.title), ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(xs.log_scale(), ys.log_scale())?;
    let size = if kind == Kind::Consume { "items in the queue" } else { "clients" };
    chart
        .configure_mesh()
        .x_desc(size)
        .max_light_lines(0)
        .x_label_formatter(&|x| x.to_string())
        .y_label_formatter(&|y| y.to_string())
        .draw()?;
    for name in Name::ALL {
        let own = lines.iter().filter(|line| line.name == name);
        let points: Vec<_> = own.filter_map(point).collect();
        if points.is_empty() {
            continue;
        }
        let style = colour(name).stroke_width(2);
        let series = LineSeries::new(points, style).point_size(3);
        let sample = move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style);
        chart.draw_series(series)?.label(name.title()).legend(sample);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

/// What lies between the least and the greatest, with some room.
fn range(values: impl Iterator<Item = f64> + Clone) -> Option<Range<f64>> {
    let least = values.clone().reduce(f64::min)?;
    Some(least * 0.8..values.reduce(f64::max)? * 1.25)
}

fn colour(name: Name) -> RGBColor {
    match name {
        Name::Gesmas => RGBColor(0xc0, 0x39, 0x2b),
        Name::Native => RGBColor(0xe6, 0x7e, 0x22),
        Name::Zookeeper => RGBColor(0x29, 0x80, 0xb9),
        Name::Etcd => RGBColor(0x27, 0xae, 0x60),
        Name::Redis => RGBColor(0x7f, 0x8c, 0x8d),
    }
}
