//! Which version of aclshim this library is, readable from the file alone: an ELF note of the owner `aclshim`.
//! (A note, because the linker drops other sections without a reference.)

const TEXT: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();
/// The text's room: words, with a NUL behind it.
const ROOM: usize = (TEXT.len() + 1).next_multiple_of(4);

/// As the ELF specification has it.
#[repr(C)]
struct Note {
    name_size: u32,
    text_size: u32,
    kind: u32,
    name: [u8; 8],
    text: [u8; ROOM],
}

const fn text() -> [u8; ROOM] {
    let mut text = [0; ROOM];
    let mut at = 0;
    while at < TEXT.len() {
        text[at] = TEXT[at];
        at += 1;
    }
    text
}

#[used]
#[unsafe(link_section = ".note.aclshim")]
static VERSION: Note = Note { name_size: 8, text_size: ROOM as u32, kind: 1, name: *b"aclshim\0", text: text() };
