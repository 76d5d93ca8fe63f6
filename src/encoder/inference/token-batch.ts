import type { TokenizedText } from '../tokenizer/truncation.ts';

/** Token ids of several texts, row-major, rows × length. Rows are padded at the end; the attention mask excludes the padding. */
export interface TokenBatch {
  readonly rows: number;
  readonly length: number;
  readonly ids: Int32Array;
  /** Token type of each token: 0 or 1 for the first or second text of a pair. Null if all are 0. */
  readonly types: Int32Array | null;
  /** Number of tokens of each row, without padding. */
  readonly tokens: Int32Array;
}

/**
 * `length`: at least the token count of the longest text. Each text must have at least one token. `rows`: at least the texts; rows
 * after them have one token each, because a model may divide by the tokens of a row.
 */
export function tokenBatch(texts: readonly TokenizedText[], length: number, rows = texts.length): TokenBatch {
  const ids = new Int32Array(rows * length);
  const tokens = Int32Array.from({ length: rows }, (_, row) => texts[row]?.ids.length ?? 1);
  const types = texts.some((text) => text.types !== undefined) ? new Int32Array(rows * length) : null;
  for (const [row, text] of texts.entries()) {
    ids.set(text.ids, row * length);
    if (text.types !== undefined) types!.set(text.types, row * length);
  }
  return { rows, length, ids, types, tokens };
}
