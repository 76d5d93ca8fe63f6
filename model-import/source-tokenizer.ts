import { existsSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type JsonObject, readJsonFile } from '../src/embedding/model/json-file.ts';
import { TextTokenizer } from '../src/embedding/tokenizer/tokenizer.ts';
import { TrawlError } from '../src/errors.ts';
import { tokenizerOfVocabulary } from './bert-vocabulary.ts';

/** Writes tokenizer.json to a path. */
export type WriteTokenizer = (path: string) => Promise<void>;

/**
 * Reads a checkpoint's tokenizer.json, or converts its vocab.txt. Throws MODEL_INVALID if the tokenizer is not supported, or
 * if a token id is not less than `vocabularySize`, the number of rows of the embedding table (null: unknown).
 */
export async function readSourceTokenizer(folder: string, vocabularySize: number | null): Promise<WriteTokenizer> {
  const path = join(folder, 'tokenizer.json');
  if (existsSync(path)) {
    check(path, await readJsonFile(path), vocabularySize);
    return (target) => copyFile(path, target);
  }
  const vocabulary = join(folder, 'vocab.txt');
  if (existsSync(vocabulary)) {
    const file = await tokenizerOfVocabulary(folder);
    check(vocabulary, file, vocabularySize);
    return (target) => writeFile(target, JSON.stringify(file));
  }
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} is missing. Make it from the model's slow tokenizer with Python: ` +
      'AutoTokenizer.from_pretrained(folder).save_pretrained(folder).',
  );
}

function check(path: string, file: JsonObject, vocabularySize: number | null): void {
  new TextTokenizer(file, path);
  const largest = largestId(file);
  if (vocabularySize === null || largest < vocabularySize) return;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has the token id ${largest}, but the model has embeddings for ${vocabularySize} tokens (ids 0 to ` +
      `${vocabularySize - 1}). Tokenizer and weights must come from the same checkpoint. If tokens were added, resize the ` +
      'embeddings before saving.',
    { details: { largestId: largest, vocabularySize } },
  );
}

/** The vocabulary maps tokens to ids (WordPiece, BPE), or is a list of [token, score] by id (Unigram). */
function largestId(file: JsonObject): number {
  const { vocab } = (file.model ?? {}) as { readonly vocab?: unknown };
  const added = (Array.isArray(file.added_tokens) ? file.added_tokens : []) as readonly { readonly id?: unknown }[];
  let largest = Array.isArray(vocab) ? vocab.length - 1 : -1;
  const ids = Array.isArray(vocab) ? [] : Object.values((vocab ?? {}) as Readonly<Record<string, unknown>>);
  for (const id of [...ids, ...added.map((token) => token.id)]) {
    if (typeof id === 'number' && id > largest) largest = id;
  }
  return largest;
}
