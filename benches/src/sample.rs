//! Repeated measurements of one figure.

/// All values of one figure.
#[derive(Default, Clone)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// More values of the same figure.
    pub fn extend(&mut self, more: &Samples) {
        self.0.extend_from_slice(&more.0);
    }

    /// The minimum.
    pub fn min(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::min)
    }

    /// The maximum.
    pub fn max(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::max)
    }

    /// The largest absolute value.
    pub fn farthest(&self) -> Option<f64> {
        self.0.iter().map(|value| value.abs()).reduce(f64::max)
    }

    /// The median.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}
