const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Characters below a space are control characters, which a string must escape. */
const SPACE = 0x20;

const ESCAPED = '"\\/bfnrt';
const HEX_DIGIT = /[\da-f]/i;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERALS = ['true', 'false', 'null'] as const;

/** What the grammar allows next; `after` means after a value. */
type State = 'value' | 'first item' | 'first key' | 'key' | 'colon' | 'after';

/**
 * The position of the first character that makes a text invalid as JSON; the text's length if it only ends too early.
 *
 * The messages of JSON.parse cannot be used: some have no position, and some quote the text, which may look like a position. The
 * function is not recursive, so that no text can overflow the stack.
 */
export function jsonFaultAt(text: string): number {
  const open: ('{' | '[')[] = [];
  let state: State = 'value';
  let at = 0;
  for (;;) {
    at = skipSpace(text, at);
    const character = text[at];
    if (character === undefined) return text.length;
    if (state === 'after') {
      const container = open.at(-1);
      if (container !== undefined && character === ',') state = container === '{' ? 'key' : 'value';
      else if (character === (container === '{' ? '}' : ']') && container !== undefined) open.pop();
      else return at;
      at++;
    } else if (state === 'colon') {
      if (character !== ':') return at;
      state = 'value';
      at++;
    } else if ((state === 'first key' && character === '}') || (state === 'first item' && character === ']')) {
      open.pop();
      state = 'after';
      at++;
    } else if (state === 'key' || state === 'first key') {
      if (character !== '"') return at;
      const end = stringEnd(text, at);
      if (!end.valid) return end.at;
      at = end.at;
      state = 'colon';
    } else if (character === '{' || character === '[') {
      open.push(character);
      state = character === '{' ? 'first key' : 'first item';
      at++;
    } else {
      const end = character === '"' ? stringEnd(text, at) : wordEnd(text, at);
      if (!end.valid) return end.at;
      at = end.at;
      state = 'after';
    }
  }
}

/** The end of a valid token, or the position of its fault. */
interface TokenEnd {
  readonly valid: boolean;
  readonly at: number;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at++;
  return at;
}

function stringEnd(text: string, start: number): TokenEnd {
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return { valid: true, at: at + 1 };
    if (unit < SPACE) return { valid: false, at };
    if (unit === BACKSLASH) {
      const escaped = escapeEnd(text, at);
      if (!escaped.valid) return escaped;
      at = escaped.at - 1;
    }
  }
  return { valid: false, at: text.length };
}

function escapeEnd(text: string, start: number): TokenEnd {
  const letter = text[start + 1];
  if (letter === undefined) return { valid: false, at: text.length };
  if (ESCAPED.includes(letter)) return { valid: true, at: start + 2 };
  if (letter !== 'u') return { valid: false, at: start + 1 };
  for (let at = start + 2; at < start + 6; at++) {
    if (!HEX_DIGIT.test(text[at] ?? '')) return { valid: false, at };
  }
  return { valid: true, at: start + 6 };
}

/** A number or a literal. */
function wordEnd(text: string, start: number): TokenEnd {
  for (const literal of LITERALS) {
    if (text.startsWith(literal, start)) return { valid: true, at: start + literal.length };
    if (text.length - start < literal.length && literal.startsWith(text.slice(start))) {
      return { valid: false, at: text.length };
    }
  }
  NUMBER.lastIndex = start;
  return NUMBER.test(text) ? { valid: true, at: NUMBER.lastIndex } : { valid: false, at: start };
}
