//! The page: one file with everything in it.

use super::model::PageModel;
use super::sha256;
use anyhow::Result;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// The script of the page, in one function: nothing of it can be reached from outside.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("words.js"),
    include_str!("charts.js"),
    include_str!("timeline.js"),
    include_str!("page.js"),
    "})();\n"
);

/// JSON that cannot end the element it stands in, whatever a program is called.
fn embedded(model: &PageModel) -> Result<String> {
    let json = serde_json::to_string(model)?;
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            letter => text.push(letter),
        }
    }
    Ok(text)
}

/// The page of a model. Equal models give equal bytes.
pub fn page(model: &PageModel) -> Result<String> {
    let data = embedded(model)?;
    let [script_source, style_source] = [SCRIPT, STYLE].map(sha256::source);
    let mut page = String::with_capacity(HTML.len() + STYLE.len() + SCRIPT.len() + data.len());
    // What is put in is not looked at again.
    let mut parts = HTML.split("{{");
    page.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        page.push_str(match name {
            "data" => &data,
            "script" => SCRIPT,
            "style" => STYLE,
            "script-source" => &script_source,
            "style-source" => &style_source,
            "version" => model.version,
            other => unreachable!("{other} is no part of a page"),
        });
        page.push_str(rest);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_is_called_stays_inside_the_data() {
        let hostile = "</script><script>alert(1)</script><!--{{script}}\u{2028}&amp;";
        let model = PageModel { sources: vec![hostile.into()], ..PageModel::default() };
        let page = page(&model).unwrap();
        assert_eq!(page.matches("<script").count(), 2, "the data and the code");
        assert!(!page.contains(hostile) && !page.contains('\u{2028}') && !page.contains("<!--"));
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let read: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(read["sources"][0], hostile);
    }

    #[test]
    fn the_policy_allows_this_script_and_this_style_and_nothing_else() {
        let page = page(&PageModel::default()).unwrap();
        let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert!(page.contains(SCRIPT) && page.contains(STYLE) && !page.contains("{{"));
    }
}
