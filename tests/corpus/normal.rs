//! What is stored of an output.

/// Outputs up to this size are stored whole.
const WHOLE: usize = 1500;
/// This much of the beginning is stored of longer ones, for readers.
const BEGINNING: usize = 240;

/// A number that hardly any other text has (64-bit FNV-1a).
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The outcomes of a script: of a long output its beginning, its length and its digest.
pub fn shortened(full: &str) -> String {
    // A line that begins so opens each part; no output has one.
    let mut parts = full.split_inclusive('\n').fold(Vec::<String>::new(), |mut parts, line| {
        if line.starts_with("$ aclshim ") || parts.is_empty() {
            parts.push(String::new());
        }
        parts.last_mut().expect("one was pushed").push_str(line);
        parts
    });
    for part in &mut parts {
        if part.len() > WHOLE {
            let cut = (0..=BEGINNING).rev().find(|at| part.is_char_boundary(*at)).unwrap_or(0);
            let status = part.lines().last().unwrap_or_default();
            *part = format!(
                "{}...\n[{} bytes, digest {:016x}]\n{status}\n",
                &part[..cut],
                part.len(),
                digest(part.as_bytes())
            );
        }
    }
    parts.concat()
}

/// A log: of each long line its beginning, its length and its digest.
pub fn lines_shortened(log: &str) -> String {
    let shortened = |line: &str| match line.len() {
        0..=BEGINNING => format!("{line}\n"),
        _ => {
            let cut = (0..=BEGINNING).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            format!("{}... [{} bytes, digest {:016x}]\n", &line[..cut], line.len(), digest(line.as_bytes()))
        }
    };
    log.lines().map(shortened).collect()
}
