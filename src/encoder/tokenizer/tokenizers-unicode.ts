/**
 * Character classes of the reference tokenizer (the Rust crate `tokenizers`, which Python's transformers uses). Its tables are from
 * Unicode 8, JavaScript's are newer: about 650 characters of recent scripts are marks or punctuation in JavaScript but not in the
 * crate, and would split words differently. The lists come from a comparison with the crate (0.23) on every code point. They also
 * make tokenising independent of the Node.js version, except for characters that a later Unicode adds.
 */

/** Nonspacing marks (Mn) in Unicode 17 that are not marks in the crate; code points in hexadecimal. */
const NOT_MARKS = ranges(`
  7FD 897-89F 8CA-8E1 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA ECE 180F 1885-1886 1ABF-1ADD 1AE0-1AEB 1DF6-1DFB
  A82C A8C5 A8FF A9BD 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFA-10EFF 10F46-10F50 10F82-10F85 11070 11073-11074
  110C2 111C9 111CF 1123E 11241 1133B 113BB-113C0 113CE 113D0 113D2 113E1-113E2 11438-1143F 11442-11444 11446
  1145E 1182F-11837 11839-1183A 1193B-1193C 1193E 11943 119D4-119D7 119DA-119DB 119E0 11A01-11A0A 11A33-11A38
  11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99 11B60 11B62-11B64 11B66 11C30-11C36
  11C38-11C3D 11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45
  11D47 11D90-11D91 11D95 11D97 11EF3-11EF4 11F00-11F01 11F36-11F3A 11F40 11F42 11F5A 13440 13447-13455
  1611E-16129 1612D-1612F 16F4F 16FE4 1CF00-1CF2D 1CF30-1CF46 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024
  1E026-1E02A 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5
  1E944-1E94A
`);

/** Punctuation (P) in Unicode 17 that is not punctuation in the crate. */
const NOT_PUNCTUATION = ranges(`
  61D 9FD A76 C77 C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 10D6E 10EAD 10ED0 10F55-10F59 10F86-10F89
  113D4-113D5 113D7-113D8 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46
  11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8 11F43-11F4F 11FFF 12FF1-12FF2
  16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F
`);

/** Format characters (Cf) that the crate keeps. */
const NOT_FORMAT = ranges('890-891 8E2 110CD 13430-1343F');

/** Nonspacing marks of Unicode 8; two of them are spacing marks now. */
const MARKS = `[[\\p{Mn}--[${NOT_MARKS}]]${ranges('1734 1171E')}]`;

/** BERT's punctuation: includes all ASCII symbols and two characters that were punctuation in Unicode 8 and are letters now. */
const PUNCTUATION = `[[\\p{P}--[${NOT_PUNCTUATION}]]!-\\/:-@\\[-\`\\{-~${ranges('166D 111C9')}]`;

/** Removed by clean_text: control (except tab and line ends), format, private use, surrogates, U+FFFD. */
const REMOVED = `[[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}\\uFFFD]--[\\t\\n\\r${NOT_FORMAT}]]`;

/** Characters that become separate words. The gap before U+2B920 is a mistake in the crate, repeated here for equal ids. */
const CJK = ranges('3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B81F 2B920-2CEAF 2F800-2FA1F');

/** Letters and numbers in Unicode 17 that are none for the crate's byte-level pre-tokenizer, which has Unicode 16. */
const NOT_LETTERS = ranges(`
  88F C5C CDC A7CE-A7CF A7D2 A7D4 A7F1 10940-10959 10EC5-10EC7 11DB0-11DDB 16EA0-16EB8 16EBB-16ED3 16FF2-16FF3
  187F8-187FF 18D09-18D1E 18D80-18DF2 1E6C0-1E6DE 1E6E0-1E6E2 1E6E4-1E6E5 1E6E7-1E6ED 1E6F0-1E6F4 1E6FE-1E6FF
  2B73A-2B73F 2CEA2-2CEAD 323B0-33479
`);
const NOT_NUMBERS = ranges('11DE0-11DE9 16FF4-16FF6');
const LETTER = `[\\p{L}--[${NOT_LETTERS}]]`;
const NUMBER = `[\\p{N}--[${NOT_NUMBERS}]]`;
const WHITESPACE = '\\p{White_Space}';

export const whitespace = new RegExp(`${WHITESPACE}+`, 'v');
/** GPT-2's pattern: contractions, words with the space before them, other characters, white space. */
export const byteLevelWords = new RegExp(
  `'s|'t|'re|'ve|'m|'ll|'d| ?${LETTER}+| ?${NUMBER}+| ?[^${WHITESPACE}${LETTER}${NUMBER}]+|` +
    `${WHITESPACE}+(?!\\P{White_Space})|${WHITESPACE}+`,
  'gv',
);

/** Characters newer than Unicode 9, which JavaScript's normalisation moves or composes; the crate's has the tables of Unicode 9. */
const NOT_NORMALIZED = ranges(`
  7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ADD 1AE0-1AEB 1DF6-1DFA A82C 105C9 105D2 105DA 105E4 10D24-10D27
  10D69-10D6D 10EAB-10EAC 10EFA-10EFB 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 1133B 11382-11385 1138B 1138E
  11390-11391 113C2 113C5 113C7-113C8 113CE-113D0 1145E 11839-1183A 11935 11938 1193D-1193E 11943 119E0 11A34 11A47
  11A99 11D42 11D44-11D45 11D97 11F41-11F42 1611E 16121-16129 1612F 16D63 16D67-16D6A 16FF0-16FF1 1E08F 1E130-1E136
  1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5
`);

/** One of them, captured, so that a split keeps it. */
export const notNormalized = new RegExp(`([${NOT_NORMALIZED}])`, 'v');

/** The reference's meaning of some classes in a pattern of a tokenizer.json, for a RegExp with the flag `v`. */
export const patternClasses: Readonly<Record<string, string>> = {
  '\\p{L}': LETTER,
  '\\p{N}': NUMBER,
  '\\s': WHITESPACE,
  '\\S': '\\P{White_Space}',
};

export const marks = new RegExp(MARKS, 'gv');
export const removedCharacters = new RegExp(REMOVED, 'gv');
export const cjkCharacters = new RegExp(`[${CJK}]`, 'gv');
export const bertWords = new RegExp(`[^\\s${PUNCTUATION}]+|${PUNCTUATION}`, 'gv');
/** The ranges of `cjkCharacters`, for use inside a character class. */
export const cjkClass: string = CJK;

/** Turns `"7FD 897-89F"` into the inside of a character class. */
function ranges(text: string): string {
  const escaped = (hex: string) => `\\u{${hex}}`;
  return text
    .trim()
    .split(/\s+/)
    .map((range) => range.split('-').map(escaped).join('-'))
    .join('');
}
