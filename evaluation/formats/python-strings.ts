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

/**
 * Reads a list of strings as Python's `repr` writes it, such as `['a', "b's"]`, or as JSON. Undefined if the text is anything else.
 * Source: the lexical analysis of string literals in the Python reference; prefixes, other escapes and f-strings do not occur in `repr`.
 */
export function pythonStrings(text: string): string[] | undefined {
  const found: string[] = [];
  let at = skipSpace(text, 0);
  if (text[at] !== '[') return undefined;
  at = skipSpace(text, at + 1);
  while (text[at] !== ']') {
    const string = stringAt(text, at);
    if (string === undefined) return undefined;
    found.push(string.value);
    at = skipSpace(text, string.end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
    else if (text[at] !== ']') return undefined;
  }
  return skipSpace(text, at + 1) === text.length ? found : undefined;
}

function stringAt(text: string, start: number): { readonly value: string; readonly end: number } | undefined {
  const quote = text[start];
  if (quote !== "'" && quote !== '"') return undefined;
  let value = '';
  let at = start + 1;
  for (;;) {
    const character = text[at];
    if (character === undefined) return undefined;
    if (character === quote) return { value, end: at + 1 };
    if (character !== '\\') {
      value += character;
      at += 1;
      continue;
    }
    const code = /^(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8}))/.exec(text.slice(at + 1, at + 10));
    if (code !== null) {
      const point = Number.parseInt(code[1] ?? code[2] ?? code[3]!, 16);
      if (point > 0x10ffff) return undefined;
      value += code[2] === undefined ? String.fromCodePoint(point) : String.fromCharCode(point);
      at += 1 + code[0].length;
      continue;
    }
    const plain = ESCAPES[text[at + 1] ?? ''];
    if (plain === undefined) return undefined;
    value += plain;
    at += 2;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (/\s/.test(text[at] ?? '')) at += 1;
  return at;
}
