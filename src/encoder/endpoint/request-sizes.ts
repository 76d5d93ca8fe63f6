/** Limits of one request. */
export interface RequestSize {
  readonly texts: number;
  /** Estimated tokens; a longer text goes alone. */
  readonly tokens: number;
}

/** A token of English text has about four characters, and special tokens surround each text. */
const CHARACTERS_PER_TOKEN = 4;
const FRAMING_TOKENS = 2;

/** Divides texts into requests, in their order; returns the position of each request's first text. */
export function divideTexts(texts: readonly string[], limit: RequestSize): number[] {
  const starts: number[] = [];
  let [count, tokens] = [0, 0];
  for (const [i, text] of texts.entries()) {
    const own = FRAMING_TOKENS + Math.ceil(text.length / CHARACTERS_PER_TOKEN);
    if (starts.length === 0 || count >= limit.texts || tokens + own > limit.tokens) {
      starts.push(i);
      [count, tokens] = [0, 0];
    }
    count++;
    tokens += own;
  }
  return starts;
}
