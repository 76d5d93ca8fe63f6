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

/** Characters of Unicode 17 that the patterns of the crate, which have Unicode 16, do not know. */
const NEWER = ranges(`
  88F C5C CDC 1ACF-1ADD 1AE0-1AEB 20C1 2B96 A7CE-A7CF A7D2 A7D4 A7F1 FBC3-FBD2 FD90-FD91 FDC8-FDCE 10940-10959
  10EC5-10EC7 10ED0-10ED8 10EFA-10EFB 11B60-11B67 11DB0-11DDB 11DE0-11DE9 16EA0-16EB8 16EBB-16ED3 16FF2-16FF6
  187F8-187FF 18D09-18D1E 18D80-18DF2 1CCFA-1CCFC 1CEBA-1CED0 1CEE0-1CEF0 1E6C0-1E6DE 1E6E0-1E6F5 1E6FE-1E6FF 1F6D8
  1F777-1F77A 1F8D0-1F8D8 1FA54-1FA57 1FA8A 1FA8E 1FAC8 1FACD 1FAEA 1FAEF 1FBFA 2B73A-2B73F 2CEA2-2CEAD 323B0-33479
`);
const known = (properties: string) => `[[${properties}]--[${NEWER}]]`;
const LETTER = known('\\p{L}');
const NUMBER = known('\\p{N}');
const WORD_CHARACTERS = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}';
/** `\w` of Rust's regular expressions. */
const WORD = known(`${WORD_CHARACTERS}\\p{Join_Control}`);
/** `\w` of Oniguruma, which reads the patterns of a tokenizer.json. Outside brackets it also matches ² ³ ¹ ¼ ½ ¾. */
const WORD_IN_BRACKETS = known(WORD_CHARACTERS);
const WORD_ALONE = known(`${WORD_CHARACTERS}\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE`);
const DIGIT = known('\\p{Nd}');
const WHITESPACE = '\\p{White_Space}';

export const whitespace = new RegExp(`${WHITESPACE}+`, 'gv');
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

/** Marks of Unicode 17 that `StripAccents` keeps. */
const NOT_ACCENTS = ranges(`
  7FD 897-89F 8CA-8D3 9FE AFA-AFF B55 C04 C3C CF3 D00 D3B-D3C D81 EBA ECE 1715 180F 1ABF-1ADD 1AE0-1AEB 1CF7
  1DF6-1DFA A82C A8FF 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFA-10EFF 10F46-10F50 10F82-10F85 11070 11073-11074
  110C2 11145-11146 111C9 111CE-111CF 11241 1133B 113B8-113C0 113C2 113C5 113C7-113CA 113CC-113D0 113D2 113E1-113E2
  1145E 1182C-1183A 11930-11935 11937-11938 1193B-1193E 11940 11942-11943 119D1-119D7 119DA-119E0 119E4 11A01-11A0A
  11A33-11A39 11A3B-11A3E 11A47 11A51-11A5B 11A8A-11A99 11B60-11B67 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47
  11D8A-11D8E 11D90-11D91 11D93-11D97 11EF3-11EF6 11F00-11F01 11F03 11F34-11F3A 11F3E-11F42 11F5A 13440 13447-13455
  1611E-1612F 16F4F 16F7F-16F87 16FE4 16FF0-16FF1 1CF00-1CF2D 1CF30-1CF46 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF
  1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5
`);

/** Characters that the compatibility forms (NFKC, NFKD) keep besides. */
const NOT_COMPATIBLE = ranges(`
  32FF A7F1-A7F4 AB69 10781-10785 10787-107B0 107B2-107BA 1CCD6-1CCF9 1E030-1E06D 1F16C 1FBF0-1FBF9
`);

/** One of them, captured, so that a split keeps it. */
export const notNormalized = new RegExp(`([${NOT_NORMALIZED}])`, 'v');
export const notCompatible = new RegExp(`([${NOT_NORMALIZED}${NOT_COMPATIBLE}])`, 'v');

/** The reference's meaning of some classes in a pattern of a tokenizer.json, for a RegExp with the flag `v`. */
export const patternClasses: Readonly<Record<string, string>> = {
  '\\p{L}': LETTER,
  '\\p{N}': NUMBER,
  '\\p{P}': known('\\p{P}'),
  '\\p{S}': known('\\p{S}'),
  '\\p{M}': known('\\p{M}'),
  '\\s': WHITESPACE,
  '\\S': '\\P{White_Space}',
  '\\w': WORD_ALONE,
  '\\W': `[^${WORD_ALONE}]`,
  '\\d': DIGIT,
  '\\D': `[^${DIGIT}]`,
};

/** The same between brackets. */
export const bracketClasses: Readonly<Record<string, string>> = {
  ...patternClasses,
  '\\w': WORD_IN_BRACKETS,
  '\\W': `[^${WORD_IN_BRACKETS}]`,
};

export const wordsAndSymbols = new RegExp(`${WORD}+|[^${WORD}${WHITESPACE}]+`, 'gv');
export const punctuation = new RegExp(PUNCTUATION, 'gv');
/** Whether a word character follows, or precedes, the position that `lastIndex` says. */
export const beforeWord = new RegExp(WORD, 'vy');
export const afterWord = new RegExp(`(?<=${WORD})`, 'vy');
/** What `StripAccents` removes. */
export const accents = new RegExp(`[[\\p{M}--[${NOT_ACCENTS}]]\\u1CF2\\u1CF3]`, 'gv');
export const marks = new RegExp(MARKS, 'gv');
export const removedCharacters = new RegExp(REMOVED, 'gv');
export const cjkCharacters = new RegExp(`[${CJK}]`, 'gv');
export const bertWords = new RegExp(`[^${WHITESPACE}${PUNCTUATION}]+|${PUNCTUATION}`, 'gv');
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
