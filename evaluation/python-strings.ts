const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '/': '/',
};

const STRING = String.raw`'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"`;
/** Between strings there is a comma; the last one may have a comma, too. */
const LIST = new RegExp(String.raw`^\s*\[\s*(?:(?:${STRING})\s*(?:,\s*|(?=\])))*\]\s*$`);

/**
 * Reads a list of strings as Python's `repr` writes it, such as `['a', "b's"]`, or as JSON. Undefined if the text is anything else.
 * Source: the lexical analysis of string literals in the Python reference; prefixes, other escapes and f-strings do not occur in `repr`.
 */
export function pythonStrings(text: string): string[] | undefined {
  if (!LIST.test(text)) return undefined;
  const strings = (text.match(new RegExp(STRING, 'g')) ?? []).map((quoted) => unescaped(quoted.slice(1, -1)));
  return strings.every((each) => each !== undefined) ? strings : undefined;
}

/** Undefined for an unknown escape. */
function unescaped(text: string): string | undefined {
  let isKnown = true;
  const plain = text.replaceAll(
    /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gs,
    (_, byte?: string, unit?: string, code?: string, letter?: string) => {
      // Two escapes \u may be the halves of one character.
      if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16));
      const point = Number.parseInt(byte ?? code ?? '', 16);
      const character =
        letter === undefined ? (point > 0x10ffff ? undefined : String.fromCodePoint(point)) : ESCAPES[letter];
      if (character === undefined) isKnown = false;
      return character ?? '';
    },
  );
  return isKnown ? plain : undefined;
}
