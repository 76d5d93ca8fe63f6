import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { fixture } from '../model-fixtures.ts';

/** Components of a tokenizer.json, and what the reference makes of each text; `fixtures/make_components.py` wrote them. */
interface Components {
  readonly texts: readonly string[];
  readonly words: readonly {
    readonly normalizer: unknown;
    readonly pre_tokenizer: unknown;
    readonly words: string[][];
  }[];
  readonly files: readonly { readonly name: string; readonly file: JsonObject; readonly ids: number[][] }[];
}

export function readComponents(): Components {
  const packed = JSON.parse(gunzipSync(readFileSync(fixture('components.json.gz'))).toString()) as Components & {
    readonly parts: readonly unknown[];
  };
  const whole = (file: JsonObject) =>
    Object.fromEntries(Object.entries(file).map(([key, part]) => [key, packed.parts[part as number]]));
  return { ...packed, files: packed.files.map((entry) => ({ ...entry, file: whole(entry.file) })) };
}

/** Compares the words of each text with the reference's, by a vocabulary of these. */
export function assertSameWords(parts: JsonObject, texts: readonly string[], words: readonly string[][]): void {
  const known = ['[UNK]', ...new Set(words.flat())];
  const vocab = Object.fromEntries(known.map((word, id) => [word, id]));
  const model = { type: 'WordLevel', vocab, unk_token: '[UNK]' };
  const tokenizer = new TextTokenizer({ ...parts, model, added_tokens: [] }, 'words');
  for (const [i, text] of texts.entries()) {
    const found = tokenizer.contentIds(text, Number.POSITIVE_INFINITY).map((id) => known[id]);
    assert.deepEqual(found, words[i], `${JSON.stringify(parts)}: ${JSON.stringify(text)}`);
  }
}

export function assertSameIds(
  name: string,
  file: JsonObject,
  texts: readonly string[],
  ids: readonly number[][],
): void {
  const tokenizer = new TextTokenizer(file, name);
  for (const [i, text] of texts.entries()) {
    const found = tokenizer.frame(tokenizer.contentIds(text, Number.POSITIVE_INFINITY));
    assert.deepEqual(found, ids[i], `${name}: ${JSON.stringify(text)}`);
  }
}
