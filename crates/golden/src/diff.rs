//! The difference between two texts, line by line: Myers' algorithm in linear memory.
//!
//! E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986, section 4b. Where two texts have little in
//! common, the search stops after [`MOST_STEPS`] steps and continues from the furthest point that was reached: the result is
//! correct, but not the shortest.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Number of unchanged lines that are shown around a change.
const CONTEXT: usize = 3;
/// Number of differing lines that one search covers at most: bounds time and memory for texts of any size.
const MOST_STEPS: usize = 512;

/// A unified diff from `expected` to `actual`; `None` if their lines are equal.
pub fn diff(expected: &str, actual: &str) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    if old == new {
        return None;
    }
    // Not a hash map: its keys would take static TLS in the shim.
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut number = |line| {
        let next = numbers.len() as u32;
        *numbers.entry(line).or_insert(next)
    };
    let a: Vec<u32> = old.iter().map(|line| number(line)).collect();
    let b: Vec<u32> = new.iter().map(|line| number(line)).collect();
    let mut marks = Marks { removed: vec![false; a.len()], added: vec![false; b.len()] };
    marks.compare(&a, &b, (0, 0));
    Some(unified(&old, &new, &marks))
}

/// The first `most` lines of a diff, and the number of those that are left out.
pub fn cut(diff: &str, most: usize) -> String {
    let all = diff.lines().count();
    if all <= most {
        return diff.into();
    }
    let mut text: String = diff.lines().take(most).flat_map(|line| [line, "\n"]).collect();
    let _ = writeln!(text, "... and {} more lines", all - most);
    text
}

/// The lines that are in one of the texts only.
struct Marks {
    removed: Vec<bool>,
    added: Vec<bool>,
}

impl Marks {
    /// Marks the differences between two parts, which begin at these lines.
    fn compare(&mut self, mut a: &[u32], mut b: &[u32], (mut from_a, mut from_b): (usize, usize)) {
        loop {
            let same = a.iter().zip(b).take_while(|(one, other)| one == other).count();
            (a, b, from_a, from_b) = (&a[same..], &b[same..], from_a + same, from_b + same);
            let same = a.iter().rev().zip(b.iter().rev()).take_while(|(one, other)| one == other).count();
            (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
            if a.is_empty() || b.is_empty() {
                self.removed[from_a..from_a + a.len()].fill(true);
                self.added[from_b..from_b + b.len()].fill(true);
                return;
            }
            // Neither part is everything: the texts begin and end with different lines.
            let (x, y) = middle(a, b);
            self.compare(&a[..x], &b[..y], (from_a, from_b));
            (a, b, from_a, from_b) = (&a[x..], &b[y..], from_a + x, from_b + y);
        }
    }
}

/// A point near the middle of a shortest edit path: the number of lines of each text before it.
fn middle(a: &[u32], b: &[u32]) -> (usize, usize) {
    let (n, m) = (a.len() as isize, b.len() as isize);
    let delta = n - m;
    let most = ((n + m + 1) / 2).min(MOST_STEPS as isize);
    // By diagonal (lines of `a` minus lines of `b`): the furthest line of `a` from the front, and from the back.
    let index = |diagonal: isize| (diagonal + most + 1) as usize;
    let mut front = vec![0isize; 2 * most as usize + 3];
    let mut back = front.clone();
    let mut furthest = (0, 0);
    for steps in 0..=most {
        for diagonal in (-steps..=steps).step_by(2) {
            let down =
                diagonal == -steps || diagonal != steps && front[index(diagonal - 1)] < front[index(diagonal + 1)];
            let mut x = if down { front[index(diagonal + 1)] } else { front[index(diagonal - 1)] + 1 };
            let mut y = x - diagonal;
            while x < n && y < m && y >= 0 && a[x as usize] == b[y as usize] {
                (x, y) = (x + 1, y + 1);
            }
            front[index(diagonal)] = x;
            let is_inside = x <= n && (0..=m).contains(&y);
            if is_inside && x + y > furthest.0 + furthest.1 {
                furthest = (x, y);
            }
            let from_back = delta - diagonal;
            let has_met = delta % 2 != 0 && from_back.abs() < steps && is_inside && x + back[index(from_back)] >= n;
            if has_met {
                return (x as usize, y as usize);
            }
        }
        for diagonal in (-steps..=steps).step_by(2) {
            let down = diagonal == -steps || diagonal != steps && back[index(diagonal - 1)] < back[index(diagonal + 1)];
            let mut x = if down { back[index(diagonal + 1)] } else { back[index(diagonal - 1)] + 1 };
            let mut y = x - diagonal;
            while x < n && y < m && y >= 0 && a[(n - 1 - x) as usize] == b[(m - 1 - y) as usize] {
                (x, y) = (x + 1, y + 1);
            }
            back[index(diagonal)] = x;
            let from_front = delta - diagonal;
            let is_inside = x <= n && (0..=m).contains(&y);
            let has_met = delta % 2 == 0 && from_front.abs() <= steps && is_inside && x + front[index(from_front)] >= n;
            if has_met {
                return ((n - x) as usize, (m - y) as usize);
            }
        }
    }
    (furthest.0 as usize, furthest.1 as usize)
}

/// One line of the diff, with its number in each text.
struct Line {
    sign: char,
    old: usize,
    new: usize,
}

fn unified(old: &[&str], new: &[&str], marks: &Marks) -> String {
    let mut lines = Vec::with_capacity(old.len().max(new.len()));
    let (mut x, mut y) = (0, 0);
    while x < old.len() || y < new.len() {
        let sign = match () {
            () if marks.removed.get(x) == Some(&true) => '-',
            () if marks.added.get(y) == Some(&true) => '+',
            () => ' ',
        };
        lines.push(Line { sign, old: x, new: y });
        x += usize::from(sign != '+');
        y += usize::from(sign != '-');
    }
    let changes: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].sign != ' ').collect();
    let mut text = String::from("--- expected\n+++ actual\n");
    for hunk in changes.chunk_by(|one, next| next - one <= 2 * CONTEXT + 1) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let begin = first.saturating_sub(CONTEXT);
        let shown = &lines[begin..(last + CONTEXT + 1).min(lines.len())];
        let count = |other: char| shown.iter().filter(|line| line.sign != other).count();
        // An empty range is named by the line before it.
        let range = |at: usize, count: usize| format!("{},{count}", at + usize::from(count > 0));
        let (removed, added) = (range(lines[begin].old, count('+')), range(lines[begin].new, count('-')));
        let title = old[..lines[begin].old].iter().rev().find(|line| line.ends_with(':') && !line.starts_with('#'));
        let title = title.map_or_else(String::new, |title| format!(" {}", title.trim()));
        let _ = writeln!(text, "@@ -{removed} +{added} @@{title}");
        for line in shown {
            let _ = writeln!(text, "{}{}", line.sign, if line.sign == '+' { new[line.new] } else { old[line.old] });
        }
    }
    text
}
