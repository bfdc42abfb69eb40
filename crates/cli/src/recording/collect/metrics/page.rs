//! The text formats of metrics: OpenMetrics, and the older format that node_exporter reads.

use std::fmt::Write;

/// The format of the metrics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The Prometheus text format, version 0.0.4.
    Text,
}

/// The type of a family of metrics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// Metrics as text, family by family.
pub struct MetricsPage {
    format: MetricsFormat,
    text: String,
    /// The family that is written now.
    name: String,
}

impl MetricsPage {
    /// A page without a family.
    pub fn new(format: MetricsFormat) -> Self {
        Self { format, text: String::new(), name: String::new() }
    }

    /// A family that has one sample.
    pub fn single(&mut self, name: &str, of: MetricType, help: &str, value: u64) {
        self.family(name, of, "", help);
        self.sample(if of == MetricType::Counter { "_total" } else { "" }, &[], value);
    }

    /// Begins a family; its samples follow.
    pub fn family(&mut self, name: &str, of: MetricType, unit: &str, help: &str) {
        // The older text names a family as its samples, and knows no info.
        let (full, of) = match (self.format, of) {
            (MetricsFormat::OpenMetrics, MetricType::Counter) => (name.to_owned(), "counter"),
            (MetricsFormat::OpenMetrics, MetricType::Info) => (name.to_owned(), "info"),
            (MetricsFormat::Text, MetricType::Counter) => (format!("{name}_total"), "counter"),
            (MetricsFormat::Text, MetricType::Info) => (format!("{name}_info"), "gauge"),
            (_, MetricType::Gauge) => (name.to_owned(), "gauge"),
            (_, MetricType::Histogram) => (name.to_owned(), "histogram"),
        };
        let _ = writeln!(self.text, "# TYPE {full} {of}");
        if self.format == MetricsFormat::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {full} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {full} {help}");
        self.name = name.to_owned();
    }

    /// Writes a sample of the family that was begun last.
    pub fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{close} {value}");
    }

    /// The text of all families.
    pub fn end(mut self) -> String {
        // In the older text this is a comment.
        self.text.push_str("# EOF\n");
        self.text
    }
}
